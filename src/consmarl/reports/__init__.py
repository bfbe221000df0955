"""Turn the files of runs into statistics, figures and a page. Nothing here trains."""
