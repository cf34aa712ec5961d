-- Kernels whose launches differ most: median and 99th percentile of duration_ns, and their ratio.
SELECT
    hardware,
    name,
    count(duration_ns) AS launches,
    quantile_cont(duration_ns, 0.5) AS median_ns,
    quantile_cont(duration_ns, 0.99) AS p99_ns,
    quantile_cont(duration_ns, 0.99) / nullif(quantile_cont(duration_ns, 0.5), 0) AS p99_over_median,
    sum(duration_ns) AS time_ns
FROM kernel_launches
GROUP BY hardware, name
HAVING count(duration_ns) >= 10
ORDER BY p99_over_median DESC NULLS LAST, time_ns DESC, hardware, name
LIMIT 50
