from tests.voice.harness import SOUND, VoiceHarness, queue_samples, spoken


def test_text_is_rendered_while_the_client_has_room(rig: VoiceHarness) -> None:
    _, client = spoken(rig)
    assert rig.scripted.sink.has_room
    queue_samples(rig, SOUND, None)
    done = client.events()[-1]
    assert (done["provider"], done["metrics"]["provider"]) == ("puppet", "puppet")
