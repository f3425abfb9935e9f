'''The site of the documentation: ``make docs`` builds it from these pages, without a network.'''

import os
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE / '_ext'), str(HERE.parent / 'src')]

# What is made from the code says what it says for everybody, whatever the one who builds the site has set.
for name in [name for name in os.environ if name.startswith(('PLUMBLINE_', 'RFM_'))]:
    del os.environ[name]

project = 'Plumbline'
extensions = ['generated']
highlight_language = 'none'
nitpicky = True
smartquotes = False         # they make one dash of two: --mode

html_theme = 'alabaster'
html_theme_options = {'description': 'Acceptance and health checks for HPC systems, on ReFrame', 'fixed_sidebar': True, 'body_max_width': 'none',
                      'sidebar_width': '230px', 'show_powered_by': False}
html_static_path = ['_static']
html_css_files = ['tables.css']
html_sidebars = {'**': ['about.html', 'searchfield.html', 'navigation.html']}
html_copy_source = False
html_show_copyright = False
html_show_sphinx = False
