"""Which rows of a log are inputs: ``country == 'DE' and version != 'shadow'``.

::

    condition   = both { "or" both }
    both        = denied { "and" denied }
    denied      = "not" denied | "(" condition ")" | comparison
    comparison  = value ( "==" | "=" | "!=" | "<" | "<=" | ">" | ">=" ) value
                | column [ "not" ] "in" "(" constant { "," constant } ")"
                | column [ "not" ] "like" text            -- % stands for any text, _ for one character
                | column "is" [ "not" ] "null"
    value       = column | constant
    constant    = 'text' | "text" | number | true | false

A column is written as it is called, with what lies inside it behind a dot (``features.age``); one with blanks or other
signs stands in backquotes. A time is compared with text such as '2026-03-01' or '2026-03-01T12:00:00+01:00'. Text that
is compared with a number counts as the number it says. A row without a value fits no comparison, as in SQL: ``is null``
asks for it.
"""

from opmon.where.conditions import Where
from opmon.where.parse import parse

__all__ = ["Where", "parse"]
