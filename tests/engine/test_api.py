"""The boundary: what travels between versions."""

import msgspec

from mercury_engine.api import EngineInfo, RescoringWeights


def test_rescoring_weights_keep_their_key_in_protocol_version_1():
    info = EngineInfo("mercury", "tiny", "cpu", 512, rescoring=RescoringWeights(model=0.5))
    sent = msgspec.msgpack.encode(info)
    assert msgspec.msgpack.decode(sent)["worth"]["model"] == 0.5
    assert msgspec.msgpack.decode(sent, type=EngineInfo) == info
