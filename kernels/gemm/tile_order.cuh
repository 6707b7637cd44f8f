// Which tile of C a block makes. Tiles are taken in groups of GROUP rows of tiles, column by column
// in each group, so that blocks that run at the same time share lines of A and of B in L2:
//
//     GROUP 2       0 2 4 6         columns of tiles
//                   1 3 5 7
//                   8 10 ...        the last group may have fewer rows
#pragma once

#include "device/types.cuh"

struct TilePlace {
    int row, column; // in tiles

    template <int GROUP> KKT_DEVICE TilePlace make(int index, int down, int across) {
        const int group = index / (GROUP * across);
        const int inside = index - group * GROUP * across;
        const int left = down - group * GROUP;
        const int rows = left < GROUP ? left : GROUP;
        return {group * GROUP + inside % rows, inside / rows};
    }
};
