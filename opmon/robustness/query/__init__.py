"""Questions about a tomography in plain words, such as ``zoom > 2 or (brightness == 5 and blur == 1)``.

::

    question    =  alternative
    alternative =  both { "or" both }
    both        =  denied { "and" denied }
    denied      =  "not" denied | "(" alternative ")" | "all" | comparison
    comparison  =  value (("<" | "<=" | ">" | ">=" | "==" | "=" | "!=") value)+
                 |  name "in" "{" number { "," number } "}"
    value       =  number | name
    name        =  a perturbation | P1 … Pk | "order" | "severity_sum" | "quality"

``0 < zoom <= 3`` is read as both of its halves. Words are read in any case. The text is never evaluated as code.
"""

from __future__ import annotations
