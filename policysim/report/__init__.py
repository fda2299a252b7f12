"""The files that a comparison leaves behind: tables, figures, page and manifest.

files       everything that is written
page        the page, from templates
answer      the answer in three sentences
ranking     which policy is best
slider      the numbers that follow epsilon and policy
drawings, data_table   the figures with their words and their data
rows        who loses how much; findings as a table
environment, shown   how templates write numbers
manifest, csv_file   what numbers depend on; tables as files
"""

from policysim.figures.embed import inline
from policysim.report.csv_file import to_csv
from policysim.report.environment import page_environment
from policysim.report.files import report_files
from policysim.report.manifest import LIBRARIES, build_manifest
from policysim.report.page import report_page

__all__ = ["LIBRARIES", "build_manifest", "inline", "page_environment", "report_files", "report_page", "to_csv"]
