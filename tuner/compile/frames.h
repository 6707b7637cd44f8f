/* What pool and compile worker say to each other. */
#ifndef KKT_TUNER_FRAMES_H
#define KKT_TUNER_FRAMES_H

enum {
    KKT_FRAME_COMPILE = 1,  /* path, architecture, defines, has text, text */
    KKT_FRAME_COMPILED,     /* a result */
    KKT_FRAME_COMPILE_ERROR /* native code, message: this worker cannot compile */
};

#endif
