"""Report to the CSV pages that ncu prints of it, so that scripts written for ncu keep working.

The rules were read off what ncu 2024.1.1 printed of 71 reports: a column of the raw page has one
scale for all rows, that of its largest value; a value of the details page has its own. Numbers
with a scaled unit have six decimals on the raw page, all others none where they are whole and
two where they are not. Cells are quoted, lines end in a line feed.
"""

from solscope.render.ncu_pages.details_page import details_csv
from solscope.render.ncu_pages.raw_page import raw_csv
from solscope.render.ncu_pages.scales import Instances, Spelling, Units, spelling_of

__all__ = ["Instances", "Spelling", "Units", "details_csv", "raw_csv", "spelling_of"]
