/* What a program does with the public library. */
#include <kkttune.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

static int failures;

static void expect(int ok, const char *what) {
    if (!ok) {
        printf("wrong: %s\n", what);
        failures++;
    }
}

static void use_results(kkt_context *context, const char *path) {
    kkt_results *results;
    kkt_choice choice;
    kkt_error error;
    char text[32];
    if (kkt_results_open(context, path, &results, &error) != KKT_OK) {
        printf("%s\n", error.message);
        failures++;
        return;
    }
    expect(kkt_results_count(results) >= 20, "entries of the export");
    expect(kkt_results_get(results, 0, &choice, NULL) == KKT_OK && choice.chunk == 16,
           "the first entry");
    expect(kkt_results_get(results, 100000, &choice, &error) == KKT_ERR_INPUT, "a bad index");
    expect(kkt_results_lookup(results, "kkt_solve", "", 0, &choice, &error) == KKT_OK, "a look-up");
    expect(strcmp(choice.tier, "exact") == 0 && fabs(choice.time_us - 100.5) < 1e-9, "its time");
    expect(kkt_choice_value(&choice, "chunk", 0) == 64 && choice.threads == 128, "its values");
    kkt_choice_text(&choice, "inverse", text, sizeof text);
    expect(strcmp(text, "recursive") == 0, "a named value");
    expect(kkt_results_lookup(results, "kkt_solve", "tokenz=1", 0, &choice, &error) ==
                   KKT_ERR_INPUT &&
               strstr(error.message, "tokenz") != NULL,
           "an unknown key is named");
    kkt_results_close(results);
}

/* Results of an H200 are not an H100's own. */
static void use_other_device(kkt_context *context, const char *path) {
    kkt_results *results;
    kkt_choice choice;
    if (kkt_results_open(context, path, &results, NULL) != KKT_OK ||
        kkt_results_lookup(results, "kkt_solve", "", 0, &choice, NULL) != KKT_OK) {
        printf("wrong: the look-up for another device\n");
        failures++;
        return;
    }
    expect(strcmp(choice.tier, "nearest") == 0 && choice.distance > 7.9, "another device's time");
    kkt_results_close(results);
}

int main(int argc, char **argv) {
    kkt_context *context;
    kkt_model_result model;
    kkt_model_blocks blocks;
    kkt_error error;
    if (argc != 2 || kkt_context_open("sm_90", "h200", &context, &error) != KKT_OK)
        return 2;
    expect(strcmp(kkt_context_device(context), "NVIDIA H200") == 0, "the device's name");
    kkt_context_close(context);
    if (kkt_context_open("sm90", NULL, &context, &error) != KKT_OK)
        return 2;
    expect(strcmp(kkt_context_device(context), "NVIDIA H200") == 0,
           "without a name: the device of the recorded measurements");
    expect(kkt_model_predict(context, "kkt_solve", NULL, NULL, "chunk=64", &model, &error) ==
                   KKT_OK &&
               model.feasible && model.hbm_bytes_per_token > 12799 &&
               model.hbm_bytes_per_token < 12801,
           "12,800 bytes a token at C = 64");
    expect(kkt_model_predict(context, "kkt_solve", NULL, NULL, "chunk=65", &model, &error) ==
               KKT_ERR_INPUT,
           "a value that is not listed");
    expect(kkt_model_occupancy(context, 128, 64, 48 * 1024, 0, &blocks, &error) == KKT_OK &&
               blocks.blocks_per_sm == 4 && blocks.by_registers == 8 &&
               strcmp(blocks.limiter, "shared_memory") == 0,
           "occupancy");
    use_results(context, argv[1]);
    kkt_context_close(context);
    if (kkt_context_open("sm90", "h100", &context, &error) != KKT_OK)
        return 2;
    use_other_device(context, argv[1]);
    kkt_context_close(context);
    expect(kkt_context_open("sm1", NULL, &context, &error) == KKT_ERR_INPUT, "an unknown arch");
    return failures != 0;
}
