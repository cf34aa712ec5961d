-- Launches of one shape in one cell that differ most: median and 99th percentile of duration_ns.
SELECT
    hardware,
    campaign,
    cell,
    name,
    grid,
    block,
    count(duration_ns) AS launches,
    quantile_cont(duration_ns, 0.5) AS median_ns,
    quantile_cont(duration_ns, 0.99) AS p99_ns,
    quantile_cont(duration_ns, 0.99) / nullif(quantile_cont(duration_ns, 0.5), 0) AS p99_over_median,
    sum(duration_ns) AS time_ns
FROM kernel_launches
GROUP BY hardware, campaign, cell, name, coalesce(name_full, name), grid, block
HAVING count(duration_ns) >= 10
ORDER BY p99_over_median DESC NULLS LAST, time_ns DESC, hardware, campaign, cell, name, grid, block
LIMIT 50
