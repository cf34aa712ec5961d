-- Each kernel and launch shape month by month: launches, mean duration_ns, mean % of peak.
SELECT
    name,
    hardware,
    grid,
    block,
    month,
    count(*) AS launches,
    count(DISTINCT campaign) AS campaigns,
    avg(duration_ns) AS mean_ns,
    avg(achieved_dram_pct_peak) AS mean_dram_pct_peak,
    avg(achieved_sm_pct_peak) AS mean_sm_pct_peak
FROM kernel_launches
GROUP BY name, coalesce(name_full, name), hardware, grid, block, month
ORDER BY name, hardware, grid, block, month
