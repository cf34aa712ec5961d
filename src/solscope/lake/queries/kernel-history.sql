-- Each kernel month by month: launches, mean duration_ns, mean % of peak, on each hardware.
SELECT
    name,
    hardware,
    month,
    count(*) AS launches,
    count(DISTINCT campaign) AS campaigns,
    avg(duration_ns) AS mean_ns,
    avg(achieved_dram_pct_peak) AS mean_dram_pct_peak,
    avg(achieved_sm_pct_peak) AS mean_sm_pct_peak
FROM kernel_launches
GROUP BY name, hardware, month
ORDER BY name, hardware, month
