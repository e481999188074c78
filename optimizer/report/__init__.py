"""Result tables and JSON. The terminal table needs rich and is imported only when printed."""

from optimizer.report.summary import ModelStats, RejectedRewrite, Report, collect, measure

__all__ = ["ModelStats", "RejectedRewrite", "Report", "collect", "measure"]
