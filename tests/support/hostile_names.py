"""What is in the runs that the views are tested with."""

from __future__ import annotations

EVIL = '<img src=x onerror="alert(1)"> & ]]> \u202eevil\u202c'
"""The title of the first story."""
ODD = 'odd \t"<b>"\u00fc.txt'
"""The name of a file."""
SECRET = "sk-ant-api03-" + "Zq7" * 20
