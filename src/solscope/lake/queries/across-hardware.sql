-- Kernels seen on more than one hardware: mean duration_ns and rates on each; shapes may differ.
SELECT
    name,
    hardware,
    count(*) AS launches,
    count(DISTINCT coalesce(grid, '?') || '/' || coalesce(block, '?')) AS shapes,
    avg(duration_ns) AS mean_ns,
    sum(dram_bytes) / nullif(sum(duration_ns) FILTER (WHERE dram_bytes IS NOT NULL), 0)
        AS dram_gb_per_s,
    sum(flop_count + tensor_flop_count) / 1e3
        / nullif(sum(duration_ns) FILTER (WHERE flop_count + tensor_flop_count IS NOT NULL), 0)
        AS tflop_per_s
FROM kernel_launches
WHERE name IN (SELECT name FROM kernel_launches GROUP BY name HAVING count(DISTINCT hardware) > 1)
GROUP BY name, hardware
ORDER BY name, hardware
