/* The share of the triangular inverse in the multiply-adds of a chunk. */
#ifndef KKT_REPORTS_LEDGER_SHARE_H
#define KKT_REPORTS_LEDGER_SHARE_H

/* inverse / (inverse + main), per token and value head, of a configuration that names `chunk` and
 * `inverse`; the main part counted in full, 3 dk dv + 2C (dk + dv), with dv = dk where the problem
 * has none. NaN where the configuration names no inverse. Formulas: docs/model.md, sections 1, 2.
 */
double kkt_ledger_share(const char *config, const char *problem);

#endif
