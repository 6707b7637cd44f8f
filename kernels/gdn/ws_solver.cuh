// The solver warpgroup of the warp-specialized gdn_fwd.
#pragma once
