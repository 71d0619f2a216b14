"""Controls of the phone for its user: decisions and switches as calls, and the lines of the keyboard.

A bare "yes" is dangerous: the confirmation that was meant may have lapsed, and another one may be open. So an answer
without a name counts only when one confirmation is open and none has lapsed in the last two seconds.
"""

from collections.abc import Callable, Mapping
from typing import assert_never

from svc_proto.engine.core import Engine
from svc_proto.phone.attachment_fetcher import AttachmentFetcher
from svc_proto.phone.command_executor import CommandExecutor
from svc_proto.phone.keyboard_control import (
    HELP,
    ConfirmationAnswer,
    DetachChannels,
    NetworkChanged,
    SetSwitch,
    TapAttachment,
    TextAction,
    TextInput,
    UserInput,
)
from svc_proto.phone.safety.gate import SafetyGate
from svc_proto.phone.safety.settings import ConfirmationPolicy, Switch
from svc_proto.phone.terminal_channels import PhoneMessageChannels
from svc_proto.phone.voice_client import PhoneVoiceClient

__all__ = ["UserControls"]

ANSWER_DELAY = 2.0  # s after a confirmation has lapsed in which a bare "yes" may have been meant for it


class UserControls:
    """Actions of the phone's user: answers to confirmations, switches, and lines of the keyboard.

    The methods are called only while the core handles a fact.
    """

    def __init__(
        self,
        engine: Engine,
        gate: SafetyGate,
        performer: CommandExecutor,
        attachments: AttachmentFetcher,
        consoles: PhoneMessageChannels,
        voice: PhoneVoiceClient,
        *,
        on_network: Callable[[bool], None],
        on_notice: Callable[[str], None],
        note: Callable[[str], None],
    ) -> None:
        self._engine = engine
        self._gate = gate
        self._performer = performer
        self._attachments = attachments
        self._consoles = consoles
        self._voice = voice
        self._on_network = on_network
        self._note = note
        self._verbs: Mapping[TextAction, Callable[[str], object]] = {
            TextAction.SHOW: self._show,
            TextAction.NOTIFY: on_notice,
            TextAction.SAY: voice.start_turn,
            TextAction.PLAY: voice.play,
            TextAction.CHAT: consoles.chat,
            TextAction.SHELL: consoles.type,
        }

    def decide(self, confirmation_id: str, *, allow: bool, remember: bool = False) -> bool:
        """Answer a confirmation; return False if it is not open."""
        return self._performer.decide(confirmation_id, allow=allow, remember=remember)

    def set_switch(self, switch: Switch, on: bool) -> bool:
        """Set a switch; return whether it now is as requested.

        It is not if the master toggle cannot be turned on: without accessibility, or on a store build.
        """
        gate, now = self._gate, self._engine.now
        done = True
        match switch:
            case Switch.MASTER:
                done = gate.set_master(on, now) is on
            case Switch.UNATTENDED:
                gate.set_unattended(on)
            case Switch.CHIP:
                gate.set_status_overlay(on)
            case Switch.ACCESSIBILITY:
                gate.set_accessibility(on)
            case Switch.CAPTURE:
                gate.set_capture_consent(on)
            case Switch.OVERLAY:
                gate.set_overlay_permission(on, now)
            case _ as never:
                assert_never(never)
        self._performer.advance()
        return done

    @property
    def awaits(self) -> bool:
        """Report whether an answer of the agent is pending."""
        return self._consoles.agent.awaits or self._voice.is_waiting

    # --- UserInputHandler ---------------------------------------------------------------------------------------

    def on_user_input(self, word: UserInput | None) -> None:
        """Handle a parsed line from the keyboard; None, an invalid line, is answered with the help."""
        match word:
            case ConfirmationAnswer():
                self._note(self._decided(word))
            case SetSwitch():
                self._note(self._turned(word))
            case TextInput(verb=verb, text=text):
                self._verbs[verb](text)
            case TapAttachment(number=number):
                if not self._attachments.tap(number):
                    self._note(f"there is nothing to fetch under {number}")
            case NetworkChanged(cellular=cellular):
                self._on_network(cellular)
                self._note(f"the network is {'cellular' if cellular else 'wifi'} now")
            case DetachChannels():
                if not self._consoles.detach_all():
                    self._note("there is nothing to leave")
            case None:
                self._note(HELP)
            case _ as never:
                assert_never(never)

    def on_keyboard_closed(self) -> None:
        """Deny the open confirmations and all later ones, unless a policy answers them: the user's input has ended."""
        if self._performer.answers is ConfirmationPolicy.ASK:
            self._performer.answers = ConfirmationPolicy.DENY
            for confirmation in self._gate.confirmations():
                self.decide(confirmation.confirmation_id, allow=False)

    def _show(self, text: str) -> None:
        if not self._attachments.show(text):
            self._note("there is no media marker in that")

    def _turned(self, word: SetSwitch) -> str:
        if self.set_switch(word.switch, word.on):
            return f"{word.switch.value} {'on' if word.on else 'off'}"
        return self._gate.view(self._engine.now).hint or "this build has no Device Control"

    def _decided(self, word: ConfirmationAnswer) -> str:
        """Apply a decision if it is clear which open confirmation it is for; return the note about the result."""
        which = word.which
        if which is None:
            names = [confirmation.confirmation_id for confirmation in self._gate.confirmations()]
            lapsed = self._performer.lapsed_at
            if not names:
                return "there is no question open"
            which = names[0]
            if len(names) > 1:
                return f"several questions are open: say for example y {which}"
            if lapsed is not None and self._engine.now.mono < lapsed + ANSWER_DELAY:
                return f"the question before this one has just lapsed: say y {which} if you mean this one"
        if not self.decide(which, allow=word.allow, remember=word.remember):
            return f"there is no question {which}"
        return f"{which} {'allowed' if word.allow else 'denied'}{', not to be asked again' if word.remember else ''}"
