-- Which run and which build stand for a candidate: fresh before stale, measured before replayed,
-- then the latest. Without a run the fresh, then the latest build.
CREATE VIEW best_runs AS
SELECT c.id AS candidate_id,
       (SELECT r.id
          FROM builds b JOIN runs r ON r.build_id = b.id
         WHERE b.candidate_id = c.id
         ORDER BY r.gpu IS 'fake', b.stale_reason IS NOT NULL, r.provenance <> 'measured',
               r.date DESC, r.id DESC
         LIMIT 1) AS run_id
  FROM candidates c;

-- One row a candidate: predicted, compiled and measured side by side.
CREATE VIEW results AS
SELECT p.kernel AS kernel,
       g.style AS style,
       c.arch AS arch,
       c.device AS device,
       p.text AS problem,
       g.text AS config,
       coalesce(c.verdict, r.outcome, b.outcome, 'predicted') AS outcome,
       CASE WHEN c.verdict IS NOT NULL THEN c.verdict_reason
            WHEN r.id IS NOT NULL THEN r.reason
            WHEN b.outcome <> 'compiled'
            THEN substr(b.log, 1, instr(b.log || char(10), char(10)) - 1)
       END AS reason,
       d.registers AS registers_predicted,
       b.registers AS registers_compiled,
       d.smem_bytes AS smem_predicted,
       b.static_smem_bytes + b.dynamic_smem_bytes AS smem_compiled,
       b.spill_store_bytes + b.spill_load_bytes AS spill_bytes,
       d.hbm_bytes AS hbm_bytes_predicted,
       r.hbm_bytes_counted AS hbm_bytes_counted,
       d.predicted_us AS predicted_us,
       r.time_us AS time_us,
       r.time_low_us AS time_low_us,
       r.time_high_us AS time_high_us,
       coalesce(r.sample_count, 0) AS samples,
       CASE WHEN b.stale_reason IS NOT NULL THEN 'stale'
            WHEN r.id IS NOT NULL THEN r.provenance
            WHEN b.id IS NOT NULL THEN 'compiled'
            ELSE 'predicted'
       END AS provenance,
       b.stale_reason AS stale_reason,
       r.energy_mj AS energy_mj,
       r.rel_fro AS rel_fro,
       r.disturbed AS disturbed
  FROM candidates c
  JOIN best_runs f ON f.candidate_id = c.id
  JOIN problems p ON p.id = c.problem_id
  JOIN configurations g ON g.id = c.configuration_id
  LEFT JOIN predictions d ON d.candidate_id = c.id
  LEFT JOIN runs r ON r.id = f.run_id
  LEFT JOIN builds b ON b.id = coalesce(r.build_id,
       (SELECT b2.id
          FROM builds b2
         WHERE b2.candidate_id = c.id
         ORDER BY b2.stale_reason IS NOT NULL, b2.id DESC
         LIMIT 1));

-- One row a timed pipeline, beside the sum of its members' own best times (NULL where one has none).
CREATE VIEW pipelines AS
SELECT t.pipeline AS pipeline,
       t.arch AS arch,
       t.device AS device,
       t.problem AS problem,
       t.chunk AS chunk,
       t.launch AS launch,
       t.outcome AS outcome,
       t.reason AS reason,
       t.time_us AS time_us,
       t.time_low_us AS time_low_us,
       t.time_high_us AS time_high_us,
       t.sample_count AS samples,
       m.time_us AS members_us,
       m.members AS members,
       CASE WHEN m.stale_reason IS NOT NULL THEN 'stale' ELSE t.provenance END AS provenance,
       m.stale_reason AS stale_reason,
       t.rel_fro AS rel_fro,
       t.disturbed AS disturbed,
       t.id AS pipeline_run_id
  FROM pipeline_runs t
  LEFT JOIN (SELECT x.pipeline_run_id AS pipeline_run_id,
                    CASE WHEN count(r.time_us) = count(*) THEN sum(r.time_us) END AS time_us,
                    group_concat(g.kernel || ' ' || g.style || ' ' || g.text, '; ') AS members,
                    max(b.stale_reason) AS stale_reason
               FROM pipeline_members x
               JOIN builds b ON b.id = x.build_id
               JOIN candidates c ON c.id = b.candidate_id
               JOIN configurations g ON g.id = c.configuration_id
               JOIN best_runs f ON f.candidate_id = c.id
               LEFT JOIN runs r ON r.id = f.run_id
              GROUP BY x.pipeline_run_id) m ON m.pipeline_run_id = t.id;
