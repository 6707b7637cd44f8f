/* A number of a table and where it comes from, as its rows write it. */
#ifndef KKT_MODEL_FACT_H
#define KKT_MODEL_FACT_H

#include "model/arch.h"

#define SHEET(v)                                                                                   \
    { (v), KKT_SOURCE_DATASHEET }
#define QUERIED(v)                                                                                 \
    { (v), KKT_SOURCE_QUERIED }
#define MEASURED(v)                                                                                \
    { (v), KKT_SOURCE_MEASURED }
#define UNSURE(v)                                                                                  \
    { (v), KKT_SOURCE_UNCONFIRMED }
#define UNKNOWN UNSURE(0)

#endif
