from svc_proto.agent import sentence_actions, sentence_pages
from svc_proto.agent.sentences import PhoneSetting, SentenceIntent

WITHOUT_PHONE = {SentenceIntent(name) for name in ("greeting", "help", "memory", "stop", "tools")}


def test_every_intent_has_one_action() -> None:
    tables = (sentence_actions.PLAIN_TOOLS, sentence_actions.SLOT_TOOLS, sentence_actions.SHOWN_TOOLS)
    found = [intent for table in (*tables, sentence_actions._FLOWS) for intent in table]
    assert {*found, *WITHOUT_PHONE} == set(SentenceIntent)
    assert len(found) == len(SentenceIntent) - len(WITHOUT_PHONE)


def test_every_setting_has_a_page() -> None:
    assert set(sentence_pages.PAGES) == set(PhoneSetting)
