/* Where the recorded measurements that ship with the program lie. */
#ifndef KKT_CLI_DATA_FOLDER_H
#define KKT_CLI_DATA_FOLDER_H

/* $KKTTUNE_REFERENCE, else share/kkttune/reference beside an installed bin/, else db/reference of
 * the source tree the program was built in; malloc'ed, NULL where none exists. */
char *kkt_reference_folder(void);

#endif
