"""Whether a choice would work: one check for each of model, voice, rate and language (wire terminal-voice 4.5)."""

from __future__ import annotations

from attrs import frozen

from svc_proto.voice.options import Offer, compatible_voices, provider_object

__all__ = ["Choice", "check_choice"]


@frozen(kw_only=True)
class Choice:
    """What is to be checked. `language` None: this family has none."""

    model: str
    voice: str
    sample_rate: int  # Hz
    language: str | None = None


def check_choice(offer: Offer, choice: Choice) -> list[dict[str, str]]:
    """`{id, status, message}` each; the choice is valid if none is an `error`."""
    known = provider_object(offer.info, offer)
    checks = [_model(known["models"], choice.model), _voice(offer, known["voices"], choice)]
    if rates := offer.info.sample_rates:
        fits = choice.sample_rate in rates
        allowed = ", ".join(map(str, rates))
        message = f"{choice.sample_rate} Hz is offered" if fits else f"{choice.sample_rate} Hz is not one of {allowed}"
        checks.append(_check("sample_rate_known", "ok" if fits else "error", message))
    if choice.language and (languages := known["languages"]):
        checks.append(_listed("language_known", "language", choice.language, languages))
    return checks


def _model(models: object, model: str) -> dict[str, str]:
    if not model and models:
        return _check("model_present", "error", "no model is chosen")
    return _listed("model_known", "model", model, models)


def _voice(offer: Offer, voices: object, choice: Choice) -> dict[str, str]:
    if not choice.voice:
        return _check("voice_present", "error", "no voice is chosen")
    compatible = compatible_voices(offer.info, offer.found, choice.model)
    if compatible is not None and choice.voice not in compatible:
        return _check("voice_compatible", "error", f"the model {choice.model} has no voice {choice.voice}")
    return _listed("voice_known", "voice", choice.voice, voices)


def _listed(name: str, what: str, value: str, values: object) -> dict[str, str]:
    if isinstance(values, list) and value in values:
        return _check(name, "ok", f"the {what} {value} is known")
    return _check(name, "warning", f"the {what} {value} is not in the list; the provider may know it all the same")


def _check(name: str, status: str, message: str) -> dict[str, str]:
    return {"id": name, "status": status, "message": message}
