"""The platform's Analytics Engine datasets."""

from __future__ import annotations

from core.backends.workerd.engine import JsBacked, JsMethod, js_call
from core.bindings.analytics_engine import AnalyticsEngineDataset


class WorkerdAnalyticsEngineDataset(JsBacked, AnalyticsEngineDataset):
    write_data_point: JsMethod = js_call(AnalyticsEngineDataset.write_data_point)
