import pytest

from svc_proto.schema.effects.app_kinds import AppKind, kind_of_app

PACKAGES = {
    AppKind.DIALER: "com.android.phone com.google.android.dialer com.samsung.android.incallui org.fossify.phone",
    AppKind.MESSAGING: "com.whatsapp com.google.android.gm com.tencent.mm com.example.mail",
    AppKind.INSTALLER: "com.android.vending com.google.android.packageinstaller org.fdroid.fdroid",
    AppKind.PERMISSIONS: "com.google.android.permissioncontroller",
    AppKind.SETTINGS: "com.android.settings com.miui.securitycenter",
    AppKind.SYSTEM_UI: "com.android.systemui",
    AppKind.SHARE_SHEET: "com.android.intentresolver",
    AppKind.BROWSER: "com.android.chrome org.mozilla.firefox",
    AppKind.LAUNCHER: "com.miui.home com.sec.android.app.launcher",
    AppKind.PRIVATE: "com.google.android.contacts org.lab.notes",
    AppKind.OTHER: "com.example.maps org.lab.shop com.example.music",
}


@pytest.mark.parametrize(("kind", "packages"), PACKAGES.items())
def test_kinds_of_apps(kind: AppKind, packages: str) -> None:
    assert {kind_of_app(package) for package in packages.split()} == {kind}
