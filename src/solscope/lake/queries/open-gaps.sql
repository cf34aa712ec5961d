-- Campaigns that are DRAFT, how much time their kernels took, and which gates keep them there.
SELECT
    c.campaign,
    c.hardware,
    c.tier,
    c.strict,
    c.gap_count,
    (SELECT sum(k.kernel_time_ns) FROM kernels k WHERE k.campaign = c.campaign) AS time_ns,
    array_to_string(list_sort(list_distinct(json_extract_string(c.gaps_json, '$[*].gate'))), ', ')
        AS gates,
    c.published_at
FROM campaigns c
WHERE c.tier = 'DRAFT'
ORDER BY c.gap_count DESC, c.campaign
