"""Files on disk → statistics, figures and a page; nothing here can train."""
