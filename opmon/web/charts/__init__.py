"""Charts as SVG, drawn here: a few kilobytes each, without a script, in the colours of the page around them.

They are written into pages as they are. Text in them is escaped, and nothing in them has a style of its own: the
pages' policy allows none, and the sheet knows light from dark.
"""

from opmon.web.charts.cube import cube
from opmon.web.charts.curve import curve
from opmon.web.charts.sparkline import sparkline
from opmon.web.charts.timeline import NARROW, WIDE, Mark, Size, marks_of, timeline, told
from opmon.web.charts.whiskers import whiskers

__all__ = ["NARROW", "WIDE", "Mark", "Size", "cube", "curve", "marks_of", "sparkline", "timeline", "told", "whiskers"]
