-- Tables of a kkttune database. docs/formats.md explains them. Unknown values are NULL.
-- The views are in views.sql: they are made anew after every migration.

CREATE TABLE meta (
    key   TEXT PRIMARY KEY NOT NULL,
    value TEXT NOT NULL
) STRICT;

-- Identity: what a result is about. Never what produced it.
CREATE TABLE problems (
    id     INTEGER PRIMARY KEY,
    kernel TEXT NOT NULL,
    text   TEXT NOT NULL, -- canonical "k=v,...", keys sorted
    UNIQUE (kernel, text)
) STRICT;

CREATE TABLE configurations (
    id     INTEGER PRIMARY KEY,
    kernel TEXT NOT NULL,
    style  TEXT NOT NULL,
    text   TEXT NOT NULL, -- canonical "k=v,...", keys sorted
    UNIQUE (kernel, style, text)
) STRICT;

CREATE TABLE candidates (
    id               INTEGER PRIMARY KEY,
    problem_id       INTEGER NOT NULL REFERENCES problems (id),
    configuration_id INTEGER NOT NULL REFERENCES configurations (id),
    arch             TEXT NOT NULL,
    device           TEXT NOT NULL,
    -- An outcome decided apart from any run (rejected by a constraint, say). NULL: the outcome
    -- follows from the best run, else the best build, else it is 'predicted'.
    verdict          TEXT,
    verdict_reason   TEXT,
    UNIQUE (problem_id, configuration_id, arch, device)
) STRICT;
CREATE INDEX candidates_by_configuration ON candidates (configuration_id);

CREATE TABLE predictions (
    candidate_id        INTEGER PRIMARY KEY REFERENCES candidates (id),
    model_version       TEXT,
    registers           INTEGER,
    smem_bytes          INTEGER,
    hbm_bytes           REAL,
    hbm_bytes_per_token REAL,
    blocks_per_sm       INTEGER,
    feasible            INTEGER NOT NULL CHECK (feasible IN (0, 1)),
    spills              INTEGER NOT NULL CHECK (spills IN (0, 1)),
    calibrated          INTEGER NOT NULL CHECK (calibrated IN (0, 1)),
    limiter             TEXT,
    reason              TEXT,
    chain_steps         REAL,
    lower_bound_us      REAL,
    predicted_us        REAL
) STRICT;

-- Provenance of the compiled tier: what was compiled, by what, from what. '' is unknown in the
-- three columns that tell builds apart.
CREATE TABLE builds (
    id                 INTEGER PRIMARY KEY,
    candidate_id       INTEGER NOT NULL REFERENCES candidates (id),
    kernel_hash        TEXT NOT NULL,
    options            TEXT NOT NULL,
    compiler           TEXT NOT NULL,
    outcome            TEXT NOT NULL,
    log                TEXT,
    registers          INTEGER,
    static_smem_bytes  INTEGER,
    dynamic_smem_bytes INTEGER,
    spill_store_bytes  INTEGER,
    spill_load_bytes   INTEGER,
    stack_bytes        INTEGER,
    barriers           INTEGER,
    cubin_bytes        INTEGER,
    compile_ms         REAL,
    stale_reason       TEXT, -- why it no longer matches sources, options or compiler
    UNIQUE (candidate_id, kernel_hash, options, compiler)
) STRICT;

-- Provenance of the measured tier: where and how it was run. Runs are added, never replaced.
CREATE TABLE runs (
    id                INTEGER PRIMARY KEY,
    build_id          INTEGER NOT NULL REFERENCES builds (id),
    provenance        TEXT NOT NULL CHECK (provenance IN ('measured', 'replayed')),
    outcome           TEXT NOT NULL,
    reason            TEXT,
    gpu               TEXT,
    driver            TEXT,
    date              TEXT, -- ISO 8601, UTC, of the measurement
    policy            TEXT,
    tool_version      TEXT,
    time_us           REAL, -- median
    time_low_us       REAL, -- and its confidence interval
    time_high_us      REAL,
    sample_count      INTEGER NOT NULL CHECK (sample_count >= 0),
    rel_fro           REAL,
    max_abs           REAL,
    growth            REAL,
    tolerance         REAL,
    sm_clock_mhz      REAL,
    memory_clock_mhz  REAL,
    temperature_c     REAL,
    power_w           REAL,
    throttle          TEXT,
    hbm_bytes_counted REAL,
    counters_note     TEXT,
    energy_mj         REAL,    -- of one launch of the plan
    outliers          INTEGER, -- samples far from the median
    throttled         INTEGER, -- samples kept although the GPU was slowed down
    disturbed         TEXT     -- what else used the GPU
) STRICT;
CREATE INDEX runs_by_build ON runs (build_id);

-- All samples of a run in the order they were taken, as a JSON array of microseconds
-- (json_each(times_us) gives one row a sample). No row: the samples were not kept.
CREATE TABLE samples (
    run_id   INTEGER PRIMARY KEY REFERENCES runs (id),
    times_us TEXT NOT NULL
) STRICT;

-- What hardware counters said of a run, counted in a process of its own after the timing.
CREATE TABLE counters (
    run_id INTEGER NOT NULL REFERENCES runs (id),
    name   TEXT NOT NULL,
    value  REAL NOT NULL,
    unit   TEXT NOT NULL,
    chip   TEXT NOT NULL, -- whose counter it is, "GH100"
    UNIQUE (run_id, name)
) STRICT;

-- Whole pipelines, their launches timed together. The columns from `provenance` on are those of
-- `runs`; times_us is what `samples` holds there. Runs are added, never replaced.
CREATE TABLE pipeline_runs (
    id                INTEGER PRIMARY KEY,
    pipeline          TEXT NOT NULL,
    problem           TEXT NOT NULL, -- canonical "k=v,...", of the pipeline
    arch              TEXT NOT NULL,
    device            TEXT NOT NULL,
    chunk             INTEGER NOT NULL,
    launch            TEXT NOT NULL CHECK (launch IN ('in_order', 'overlapped')),
    provenance        TEXT NOT NULL CHECK (provenance IN ('measured', 'replayed')),
    outcome           TEXT NOT NULL,
    reason            TEXT,
    gpu               TEXT,
    driver            TEXT,
    date              TEXT,
    policy            TEXT,
    tool_version      TEXT,
    time_us           REAL,
    time_low_us       REAL,
    time_high_us      REAL,
    sample_count      INTEGER NOT NULL CHECK (sample_count >= 0),
    rel_fro           REAL,
    max_abs           REAL,
    growth            REAL,
    tolerance         REAL,
    sm_clock_mhz      REAL,
    memory_clock_mhz  REAL,
    temperature_c     REAL,
    power_w           REAL,
    throttle          TEXT,
    hbm_bytes_counted REAL,
    counters_note     TEXT,
    energy_mj         REAL,
    outliers          INTEGER,
    throttled         INTEGER,
    disturbed         TEXT,
    times_us          TEXT
) STRICT;

-- What a pipeline was made of: one build a kernel, in the order of launching.
CREATE TABLE pipeline_members (
    pipeline_run_id INTEGER NOT NULL REFERENCES pipeline_runs (id),
    place           INTEGER NOT NULL CHECK (place >= 0),
    build_id        INTEGER NOT NULL REFERENCES builds (id),
    UNIQUE (pipeline_run_id, place)
) STRICT;
