"""The platform's Analytics Engine datasets."""

from __future__ import annotations

from core.backends.workerd.engine import JsBacked, js_call
from core.bindings.analytics_engine import AnalyticsEngineDataset


class WorkerdAnalyticsEngineDataset(JsBacked, AnalyticsEngineDataset):
    write_data_point = js_call(AnalyticsEngineDataset.write_data_point)
