#ifndef KKT_BASE_VERSION_H
#define KKT_BASE_VERSION_H

#define KKT_VERSION "0.1.0"

#endif
