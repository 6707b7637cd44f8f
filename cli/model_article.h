/* The article's comparison of three write styles, recomputed. */
#ifndef KKT_CLI_MODEL_ARTICLE_H
#define KKT_CLI_MODEL_ARTICLE_H

/* Styles A, B, C side by side at the article's values (dk = 128, block_dv = 64, 2-byte elements),
 * with what exact occupancy says differently. */
void kkt_model_print_article(void);

#endif
