-- Kernels that lose the most time below their roof: time x (1 - speed of light), per hardware.
WITH captures AS (  -- a capture that several cells were imported from counts once
    SELECT campaign, cell, string_agg(sha256, ',' ORDER BY sha256) AS reports
    FROM receipts
    WHERE step = 'report'
    GROUP BY campaign, cell
),
copies AS (
    SELECT campaign, cell
    FROM captures
    QUALIFY row_number() OVER (PARTITION BY reports ORDER BY campaign, cell) > 1
)
SELECT
    hardware,
    name,
    count(DISTINCT coalesce(name_full, name)) AS variants,
    count(DISTINCT campaign || '/' || cell) AS cells,
    sum(kernel_time_ns) AS time_ns,
    sum(kernel_time_ns * speed_of_light_profiled) / sum(kernel_time_ns)
        FILTER (WHERE speed_of_light_profiled IS NOT NULL) AS speed_of_light,
    sum(kernel_time_ns * greatest(1 - speed_of_light_profiled, 0))
        FILTER (WHERE speed_of_light_profiled IS NOT NULL) AS lost_ns,
    count(DISTINCT campaign || '/' || cell) FILTER (WHERE speed_of_light_profiled IS NULL)
        AS cells_unmeasured
FROM kernels ANTI JOIN copies USING (campaign, cell)
GROUP BY hardware, name
ORDER BY lost_ns DESC NULLS LAST, time_ns DESC NULLS LAST, hardware, name
LIMIT 50
