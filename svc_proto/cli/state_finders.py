"""Problems of files, clock, credentials and settings of a host, and of its phones, as health checks.

Each finder returns a text for the operator, or None if there is no problem.
"""

from collections.abc import Callable, Sequence

from svc_proto.cli.health_facts import ERROR, NOTE, WARNING, CheckRegistry, DeviceFacts, HostFacts
from svc_proto.schema.json_object import JsonObject

__all__ = ["CHECKS"]

DAY = 86_400.0  # s
MIN_FREE = 50 * 1024 * 1024  # bytes: below, writes of the store fail soon
LOW_FREE = 500 * 1024 * 1024  # bytes
CLOCK_SKEW = 300.0  # s
BACKUP_AGE = 30 * DAY
MIN_KEY = 16  # characters
MIN_KINDS = 8  # different characters of a key that is not easily guessed
SESSION_SOON = 3 * DAY
AWAY = 7 * DAY  # a phone that was not online for so long
MASTER = "master_enabled"  # the app's switch for Device Control
CHECKS = CheckRegistry()


# --- files and clock --------------------------------------------------------------------------------------------------


@CHECKS.add(ERROR, "disk_full", "Disk", "free bytes at the home", "free some space")
def _find_full(facts: HostFacts) -> str | None:
    """Return a text if the disk of the service home has less than `MIN_FREE` bytes free, else None."""
    return _free(facts) if facts.disk_free is not None and facts.disk_free < MIN_FREE else None


@CHECKS.add(WARNING, "disk_low", "Disk", "free bytes at the home", "free some space")
def _find_nearly_full(facts: HostFacts) -> str | None:
    """Return a text if the disk of the home has from `MIN_FREE` to less than `LOW_FREE` bytes free, else None."""
    return _free(facts) if facts.disk_free is not None and MIN_FREE <= facts.disk_free < LOW_FREE else None


def _free(facts: HostFacts) -> str:
    return f"{(facts.disk_free or 0) / 1024 / 1024:.0f} MiB are free at {facts.home}"


@CHECKS.add(ERROR, "home_not_writable", "Home", "a file written to the home", "mount it writable, or set SVC_HOME")
def _find_not_writable(facts: HostFacts) -> str | None:
    """Return a text if the service home cannot be written, else None."""
    return f"{facts.home}: {facts.home_problem}" if facts.home_problem else None


@CHECKS.add(WARNING, "home_readable", "Home", "modes of the home and .env", "chmod 700 the folder, 600 the file")
def _find_readable_by_others(facts: HostFacts) -> str | None:
    """Return a text on files of the home that other users can read; None if there is none."""
    return f"other users can read {', '.join(facts.open_files)}" if facts.open_files else None


@CHECKS.add(ERROR, "database_broken", "Database", "a read of the database", "restore a backup, or see svc db --help")
def _find_database(facts: HostFacts) -> str | None:
    """Return a text if the database has a problem: it is damaged, locked or not reachable, for example; else None."""
    return f"{facts.database}: {facts.database_problem}" if facts.database_problem else None


@CHECKS.add(ERROR, "clock_behind", "Clock", "times of files in the home", "set the clock: timedatectl set-ntp true")
def _find_clock_back(facts: HostFacts) -> str | None:
    """Return a text if a file of the home is dated `CLOCK_SKEW` or more in the future, else None."""
    newest = facts.newest_file_at
    if newest is None or newest - facts.now < CLOCK_SKEW:
        return None
    return f"a file of the home was written {(newest - facts.now) / 60:.0f} minutes in the future"


@CHECKS.add(ERROR, "clock_off", "Clock", "Date of another server", "set the clock: timedatectl set-ntp true")
def _find_clock_off(facts: HostFacts) -> str | None:
    """Return a text if the clock differs by `CLOCK_SKEW` or more from that of another server, else None."""
    other = facts.foreign_clock
    if other is None or abs(other - facts.now) < CLOCK_SKEW:
        return None
    return f"{abs(other - facts.now) / 60:.0f} minutes off {facts.clock_source}"


@CHECKS.add(WARNING, "backup_missing", "Backup", "run/last-backup", "svc backup")
def _find_no_backup(facts: HostFacts) -> str | None:
    """Return a text if the home is older than `BACKUP_AGE` and has no backup, else None."""
    if facts.backup_at is not None or facts.home_since is None or facts.now - facts.home_since < BACKUP_AGE:
        return None
    return f"no backup was made, and the home is {(facts.now - facts.home_since) / DAY:.0f} days old"


@CHECKS.add(WARNING, "backup_old", "Backup", "run/last-backup", "svc backup")
def _find_old_backup(facts: HostFacts) -> str | None:
    """Return a text if the last backup is older than `BACKUP_AGE`, else None."""
    at = facts.backup_at
    return f"the last one is {(facts.now - at) / DAY:.0f} days old" if at and facts.now - at > BACKUP_AGE else None


# --- credentials and settings -----------------------------------------------------------------------------------------


@CHECKS.add(ERROR, "key_missing", "API key", "API_SERVER_KEY", "make one: svc key rotate")
def _find_no_key(facts: HostFacts) -> str | None:
    """Return a text if an API on the network has no key, else None."""
    open_api = facts.key == "" and facts.public_server("api")
    return "the API is open to the network without a key" if open_api else None


@CHECKS.add(WARNING, "key_weak", "API key", "API_SERVER_KEY", "make one: svc key rotate")
def _find_weak_key(facts: HostFacts) -> str | None:
    """Return a text if the API's key is short or has few different characters, else None."""
    key = facts.key
    if not key or (len(key) >= MIN_KEY and len(set(key)) >= MIN_KINDS):
        return None
    return f"{len(key)} characters, {len(set(key))} of them different"


@CHECKS.add(ERROR, "password_weak", "Dashboard", "SVC_DASHBOARD_PASSWORD", "set a longer one")
def _find_weak_password(facts: HostFacts) -> str | None:
    """Return a text if a dashboard on the network has a password that is easily guessed, else None."""
    word = facts.dashboard_password
    if word is None or not facts.public_server("dashboard") or (len(word) >= MIN_KINDS and len(set(word)) > 3):
        return None
    return "the dashboard is open to the network with a password that is easily guessed"


@CHECKS.add(WARNING, "brand_differs", "Names", "SVC_BRAND", "svc down && svc up")
def _find_other_brand(facts: HostFacts) -> str | None:
    """Return a text if the running relay has another brand than the settings, else None."""
    relay = facts.server("relay")
    if relay is None or not relay.runs or relay.brand == facts.brand:
        return None
    return f"the relay runs with {relay.brand}, and the settings have {facts.brand}"


CHECKS.add(ERROR, "env_unreadable", "Settings", ".env", "mend the line")(lambda facts: facts.env_problem or None)


def _find_listed(of: Callable[[HostFacts], Sequence[str]]) -> Callable[[HostFacts], str | None]:
    """Return a finder that reports all texts which `of` reads from the observations."""
    return lambda facts: "; ".join(of(facts)) or None


CHECKS.add(WARNING, "env_unknown", "Settings", ".env and environment", "correct the names")(
    _find_listed(lambda f: f.unknown_variables)
)
CHECKS.add(WARNING, "config_wrong", "Settings", "config.yaml", "mend the lines")(
    _find_listed(lambda f: f.config_problems)
)
CHECKS.add(WARNING, "path_missing", "Settings", "paths in the settings", "create them, or change it")(
    _find_listed(lambda f: f.missing_paths)
)


# --- phones and their sessions ----------------------------------------------------------------------------------------


@CHECKS.add(NOTE, "phone_missing", "Phones", "GET /sessions", "pair one: svc pair")
def _find_no_phone(facts: HostFacts) -> str | None:
    """Return a text if no device is paired, else None."""
    return "no device is paired" if facts.devices == () else None


@CHECKS.add(WARNING, "phone_away", "Phones", "GET /sessions", "open the app on the phone")
def _find_phone_away(facts: HostFacts) -> str | None:
    """Return a text on phones that were last online more than `AWAY` seconds ago; None if there is none."""
    away = [
        f"{each.name} ({(facts.now - each.seen_at) / DAY:.0f} days)"
        for each in facts.devices or ()
        if each.is_phone and not each.is_online and each.seen_at is not None and facts.now - each.seen_at > AWAY
    ]
    return f"not online for long: {', '.join(away)}" if away else None


@CHECKS.add(NOTE, "phone_offline", "Phones", "GET /sessions", "open the app on the phone")
def _find_phone_offline(facts: HostFacts) -> str | None:
    """Return a text if phones are paired and none of them is online, else None."""
    phones = [each for each in facts.devices or () if each.is_phone]
    offline = [each.name for each in phones if not each.is_online]
    return f"not online now: {', '.join(offline)}" if offline and len(offline) == len(phones) else None


@CHECKS.add(WARNING, "phone_store_build", "Device Control", "GET /bridge/devices", "install the app's sideload build")
def _find_store_build(facts: HostFacts) -> str | None:
    """Return a text on online phones whose app has no Device Control; None if there is none."""
    return _named(
        "an app from the store cannot control",
        facts,
        lambda each: each.is_online and _bridge(each, "device_control_supported") is False,
    )


@CHECKS.add(NOTE, "phone_control_off", "Device Control", "GET /bridge/devices", "switch it on in the app")
def _find_no_control(facts: HostFacts) -> str | None:
    """Return a text on online phones with Device Control off; None if there is none."""
    return _named("Device Control is off", facts, lambda each: each.is_online and _bridge(each, MASTER) is False)


@CHECKS.add(WARNING, "phone_accessibility_off", "Device Control", "GET /bridge/devices", "switch it on in Android")
def _find_no_accessibility(facts: HostFacts) -> str | None:
    """Return a text on online phones with Device Control on and accessibility off; None if there is none."""
    return _named(
        "the accessibility service is off",
        facts,
        lambda each: (
            each.is_online and _bridge(each, MASTER) is True and _bridge(each, "accessibility_granted") is False
        ),
    )


@CHECKS.add(WARNING, "phone_battery", "Phones", "GET /bridge/devices", "allow the app to run unrestricted")
def _find_battery_optimized(facts: HostFacts) -> str | None:
    """Return a text on phones that report battery optimization of the app; None if there is none."""

    def is_optimized(each: DeviceFacts) -> bool:
        device = JsonObject.of(each.status).get_object("device")
        return device.get("battery_optimized") is True or device.get("ignoring_battery_optimizations") is False

    return _named("Android may stop the app", facts, is_optimized)


@CHECKS.add(WARNING, "session_expires", "Phones", "GET /sessions", "svc extend, or pair again")
def _find_session_ends(facts: HostFacts) -> str | None:
    """Return a text on sessions that end soon; None if there is none."""
    soon = [
        f"{each.name} in {(each.expires_at - facts.now) / DAY:.0f} days"
        for each in facts.devices or ()
        if each.expires_at is not None and 0 < each.expires_at - facts.now < SESSION_SOON
    ]
    return f"sessions end: {', '.join(soon)}" if soon else None


def _named(problem: str, facts: HostFacts, has: Callable[[DeviceFacts], bool]) -> str | None:
    names = [each.name for each in facts.devices or () if has(each)]
    return f"{problem}: {', '.join(names)}" if names else None


def _bridge(device: DeviceFacts, name: str) -> object:
    return JsonObject.of(device.status).get_object("bridge").get(name)
