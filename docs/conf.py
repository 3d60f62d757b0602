"""How Sphinx builds the pages: `make docs`."""

import fedrela

project = "fedrela"
copyright = "2026, the fedrela developers"
version = release = fedrela.__version__
extensions = ["myst_nb", "numpydoc", "sphinx.ext.autodoc", "sphinx_copybutton"]
exclude_patterns = ["_build", "jupyter_execute"]
html_theme = "furo"
html_title = "fedrela"
html_static_path = ["static"]
html_css_files = ["fedrela.css"]
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#1f5f8b", "color-brand-content": "#1f5f8b"},
    "dark_css_variables": {"color-brand-primary": "#8ec7ee", "color-brand-content": "#8ec7ee"},
}
pygments_style = "default"
pygments_dark_style = "github-dark"
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
smartquotes = False  # "--kind" stays as it is typed
autodoc_typehints = "none"
numpydoc_show_class_members = False
myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 3
nb_execution_mode = "force"  # the notebook has no outputs of its own
nb_execution_in_temp = True
nb_execution_timeout = 600
nb_execution_raise_on_error = True


def setup(app):
    """Keep a number and its deviation on one line of a table."""
    app.connect("source-read", lambda app, name, text: text.append(text.pop().replace(" ± ", "\u00a0±\u00a0")))
