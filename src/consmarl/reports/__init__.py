"""Turn the files of runs into statistics, figures and a page; nothing here trains."""
