"""Words and patterns of labels in the languages of many phones, as data for the rules on effects.

The words of a list, in no order of languages, are separated by `|` or line ends. A list of labels has whole labels; a
pattern has parts of a screen's text. New words are added at the end of a line.
"""

import re
from collections.abc import Mapping

from svc_proto.schema.effects.effect_kinds import EffectKind

__all__ = [
    "CONFIRMING",
    "DEFAULT_VERBS",
    "EFFECT_SYMBOLS",
    "EFFECT_WORDS",
    "HARMLESS",
    "LURES",
    "NOUNS",
    "NOUN_ENDINGS",
    "PAYMENT",
    "PRICE",
    "SEARCHING",
    "SECRET",
    "SLIDE",
]

DEFAULT_VERBS = (  # spec "Bridge safety gates" 5b, in its order
    "send",
    "pay",
    "delete",
    "transfer",
    "confirm",
    "submit",
    "post",
    "publish",
    "buy",
    "purchase",
    "charge",
    "withdraw",
)
EFFECT_WORDS: Mapping[EffectKind, str] = {
    EffectKind.CALL: """
call|call now|dial|video call|voice call|place call|start call|redial|call back|emergency call|answer|answer call
anrufen|rufe an|ruf an|rufen sie an|appelle|appelez|llama|llame|ligue agora|jetzt anrufen|anruf|nummer wählen|zurückrufen|videoanruf|notruf|annehmen
appeler|appel|appeler maintenant|rappeler|composer le numéro|appel vidéo|décrocher
llamar|llamada|llamar ahora|marcar número|volver a llamar|videollamada|contestar
ligar|ligar agora|chamar|chamada|fazer chamada|videochamada|atender
chiama|chiama ora|chiamata|richiama|videochiamata|rispondi alla chiamata
bellen|bel nu|bel|zadzwoń|połącz|ring|ring upp|ring op|soita|ara|hemen ara|arama yap|zavolat|volat|hívás|apelează|sună
позвонить|вызов|набрать номер|перезвонить|вызвать|зателефонувати|подзвонити|κλήση|κάλεσε
拨打|打电话|呼叫|拨号|立即拨打|通话|撥打|打電話|電話をかける|発信|通話|電話する|전화 걸기|전화걸기|전화|통화|발신
कॉल करें|कॉल|फ़ोन करें|डायल करें|اتصال|اتصل|اتصل الآن|مكالمة|gọi|gọi ngay|panggil|telepon|hubungi|โทร|โทรออก|תקשר|חייג""",
    EffectKind.MESSAGE: """
send|send now|send message|submit|post|publish|tweet|share|share now|resend|send it|send all|comment|post now|broadcast|go live|invite
forward now|send invite|apply now|sign and send|vote|rate and send|send to all
sende|sende ab|schicke|schick ab|teile|veröffentliche|envoie|envoyez|partagez|publiez|envía|envíe|publica|publique|comparte|comparta|envie|compartilhe|senden|absenden|abschicken|jetzt senden|nachricht senden|veröffentlichen|posten|teilen|einreichen|versenden|schicken|einladen|kommentieren
envoyer|envoyer maintenant|envoyer le message|publier|partager|soumettre|poster|valider et envoyer|inviter|renvoyer|expédier
enviar|enviar ahora|enviar mensaje|mandar|publicar|compartir|presentar|remitir|invitar|reenviar ahora|postear|comentar
enviar agora|enviar mensagem|compartilhar|partilhar|postar|submeter|convidar|invia|invia ora|pubblica|condividi|inoltra ora|invita
verzenden|verstuur|versturen|verzend|stuur|publiceren|plaatsen|delen|wyślij|opublikuj|udostępnij|prześlij|skicka|publicera|dela|send nå
send nu|offentliggør|lähetä|julkaise|jaa|gönder|paylaş|yayınla|yolla|odeslat|zveřejnit|sdílet|küldés|megosztás|trimite|publică|distribuie
отправить|послать|опубликовать|поделиться|выслать|разместить|переслать всем|надіслати|відправити|опублікувати|αποστολή|δημοσίευση
发送|提交|发布|分享|发表|寄出|发出|傳送|送出|發送|發佈|送信|投稿|共有|送る|公開する|보내기|전송|게시|공유|발송|제출
भेजें|भेजो|साझा करें|पोस्ट करें|प्रकाशित करें|सबमिट करें|إرسال|أرسل|نشر|مشاركة|تقديم|gửi|gửi ngay|đăng|chia sẻ|kirim|bagikan|terbitkan|ส่ง|แชร์|โพสต์|שלח|שליחה|פרסם""",
    EffectKind.PURCHASE: """
pay|pay now|buy|buy now|buy it now|purchase|place order|place your order|order|order now|checkout|check out|complete order|complete purchase|confirm order
subscribe|subscribe now|start free trial|start trial|book|book now|reserve|donate|donate now|bid|place bid|top up|add card|tip|transfer|transfer now
send money|withdraw|charge|confirm and pay|confirm payment|submit order|one click buy|1 click buy|slide to pay|swipe to pay|request ride|confirm pickup
get it now|upgrade now|go premium|renew|rent|invest|sell|trade|deposit|pay bill|add funds|exchange|swap|stake|approve payment|complete payment|finish order
kaufe|kaufen sie|kaufe jetzt|bestelle|bezahle|zahle|buche|überweise|abonniere|spende|achète|achetez|commandez|paie|payez|réservez|abonnez vous|transférez|compre|pague|pide|reserva|suscríbete|transfiere|assine|买单|马上买|我要买|付钱|付费|开通|续费|打赏|发红包|zahlen|bezahlen|jetzt bezahlen|jetzt zahlen|kaufen|jetzt kaufen|bestellen|jetzt bestellen|kostenpflichtig bestellen|zahlungspflichtig bestellen|bestellung abschicken
bestellung aufgeben|abonnieren|buchen|jetzt buchen|zahlungspflichtig buchen|reservieren|spenden|bieten|aufladen|überweisen|überweisung|abheben|geld senden|kauf abschließen
payer|payer maintenant|acheter|acheter maintenant|commander|passer la commande|passer commande|valider la commande|confirmer la commande|finaliser la commande|s abonner|réserver
faire un don|virement|virer|effectuer le virement|enchérir|recharger|retirer|finaliser l achat|commander et payer|valider le paiement|confirmer le paiement
pagar|pagar ahora|comprar|comprar ahora|comprar ya|realizar pedido|hacer pedido|tramitar pedido|confirmar pedido|finalizar compra|pedir|pedir ahora|suscribirse|suscribirme|reservar
donar|pujar|recargar|transferir|retirar|enviar dinero|confirmar compra|confirmar pago|ordenar
pagar agora|comprar agora|fazer pedido|finalizar pedido|finalizar compra|fechar pedido|concluir compra|assinar|doar|transferência|fazer pix|sacar|enviar dinheiro|encomendar
paga|paga ora|acquista|acquista ora|compra|compra ora|ordina|ordina ora|effettua ordine|invia ordine|conferma ordine|abbonati|prenota|dona|trasferisci|bonifico|preleva|ricarica
betalen|nu betalen|kopen|koop nu|nu kopen|bestelling plaatsen|afrekenen|boeken|doneren|overmaken|zapłać|kup|kup teraz|zamów|zamawiam|złóż zamówienie|kupuję i płacę|zamawiam z obowiązkiem zapłaty
subskrybuj|rezerwuj|przelej|betala|köp|köp nu|beställ|slutför köp|betal|køb|kjøp|bestill|maksa|osta|tilaa|vahvista tilaus|öde|satın al|hemen al|sipariş ver|siparişi onayla|rezervasyon yap|havale
zaplatit|koupit|objednat|odeslat objednávku|fizetés|vásárlás|megrendelés|plătește|cumpără|comandă|πληρωμή|αγορά|παραγγελία
оплатить|заплатить|купить|купить сейчас|заказать|оформить заказ|подтвердить заказ|подписаться|забронировать|пожертвовать|перевести|пополнить|снять|перевод|сплатити|купити|замовити
支付|立即支付|付款|购买|立即购买|下单|立即下单|提交订单|确认付款|确认支付|确认订单|转账|订阅|预订|捐款|充值|提现|结算|去结算|去支付|购买并支付|購買|立即購買|下訂單|結帳|轉帳
支払う|お支払い|購入|購入する|今すぐ購入|今すぐ買う|買う|注文|注文する|注文を確定|予約する|振込|送金|定期購入|결제|결제하기|구매|구매하기|바로구매|주문|주문하기|송금|이체|예약|구독|후원
भुगतान करें|भुगतान|खरीदें|अभी खरीदें|ऑर्डर करें|ऑर्डर दें|बुक करें|दान करें|पैसे भेजें|सदस्यता लें|دفع|ادفع|ادفع الآن|شراء|اشتر|اشتر الآن|اطلب|اطلب الآن|تأكيد الطلب|تحويل|حجز|تبرع|اشتراك
thanh toán|mua|mua ngay|đặt hàng|chuyển khoản|đặt vé|bayar|beli|beli sekarang|pesan sekarang|buat pesanan|langganan|donasi|ชำระเงิน|ซื้อ|ซื้อเลย|สั่งซื้อ|โอนเงิน|שלם|קנה|הזמן""",
    EffectKind.INSTALL: """
install|install now|install anyway|update|aktualisieren|mettre à jour|actualizar|atualizar|aggiorna|bijwerken|обновить|更新|更新する|업데이트|अपडेट करें|تحديث|cập nhật|perbarui|update now|update all|uninstall|reinstall|get app|download and install|install app
installiere|installe|installez|instala|instale|installieren|jetzt installieren|trotzdem installieren|deinstallieren|aktualisieren und neu starten|jetzt aktualisieren
installer|installer maintenant|désinstaller|installer quand même|mettre à jour maintenant
instalar|instalar ahora|desinstalar|instalar de todos modos|actualizar ahora|instalar agora|instalar mesmo assim|atualizar agora
installa|installa ora|disinstalla|aggiorna ora|installeren|verwijder app|zainstaluj|instaluj|odinstaluj|installera|avinstallera|installér|asenna|poista asennus
yükle|hemen yükle|kaldır|kur|nainstalovat|instalovat|odinstalovat|telepítés|instalează|установить|удалить приложение|обновить сейчас|встановити|εγκατάσταση
安装|立即安装|仍要安装|卸载|继续安装|立即更新|安裝|解除安裝|インストール|アンインストール|今すぐ更新|설치|설치하기|제거|지금 업데이트
इंस्टॉल करें|इंस्टॉल|अनइंस्टॉल करें|تثبيت|ثبت|إلغاء التثبيت|cài đặt ngay|cài đặt ứng dụng|gỡ cài đặt|pasang|instal|copot pemasangan|ติดตั้ง|ถอนการติดตั้ง|התקן""",
    EffectKind.PERMISSION: """
allow|allow all|allow always|always allow|allow all the time|while using the app|only this time|allow from this source|grant|grant access|grant permission
authorize|authorise|approve|enable|activate|give access|trust|trust this device|pair|allow access|unknown apps|install unknown apps|unknown sources|link device
erlaube|erlaube es|autorise|autorisez|permite|permita|zulassen|erlauben|immer erlauben|nur dieses mal|bei nutzung der app|zugriff erlauben|gestatten|genehmigen|berechtigen|freigeben|aktivieren|autorisieren|koppeln|unbekannte quellen|unbekannte apps
autoriser|toujours autoriser|autoriser l accès|permettre|accorder|activer|approuver|uniquement cette fois|sources inconnues|jumeler
permitir|permitir siempre|permitir acceso|autorizar|conceder|activar|habilitar|aprobar|solo esta vez|orígenes desconocidos|fuentes desconocidas|vincular
permitir sempre|conceder acesso|ativar|aprovar|fontes desconhecidas|consenti|consenti sempre|autorizza|concedi|attiva|approva|origini sconosciute
toestaan|altijd toestaan|toegang verlenen|inschakelen|goedkeuren|zezwól|zawsze zezwalaj|włącz|zatwierdź|tillåt|aktivera|godkänn|tillad|tillat|salli|ota käyttöön
izin ver|her zaman izin ver|etkinleştir|onayla|povolit|vždy povolit|engedélyezés|permite|разрешить|всегда разрешать|предоставить|включить|одобрить|дозволити|неизвестные источники|να επιτρέπεται
允许|始终允许|仅此一次|授权|同意授权|启用|批准|信任|未知来源|未知来源应用|允许|允許|一律允許|授權|啟用|許可|許可する|常に許可|承認|有効にする|提供元不明|허용|항상 허용|권한 부여|승인|활성화|출처를 알 수 없는 앱
अनुमति दें|हमेशा अनुमति दें|स्वीकृत करें|सक्षम करें|अधिकृत करें|سماح|السماح|اسمح|السماح دائما|منح|تفعيل|موافقة|مصادر غير معروفة|cho phép|luôn cho phép|izinkan|selalu izinkan|setujui|aktifkan|อนุญาต|เปิดใช้|אפשר|הרשה""",
    EffectKind.SETTING: """
airplane mode|flight mode|turn off|turn on|disable|disconnect|forget network|mobile data|developer options|usb debugging|format|hotspot|turn off wifi
flugmodus|ausschalten|deaktivieren|einschalten|mobile daten|formatieren|mode avion|désactiver|éteindre|données mobiles|formater
modo avión|desactivar|apagar|datos móviles|formatear|modo avião|desativar|desligar|dados móveis|modalità aereo|disattiva|spegni|dati mobili
vliegtuigmodus|uitschakelen|tryb samolotowy|wyłącz|flygplansläge|stäng av|uçak modu|devre dışı bırak|režim letadlo|vypnout|режим полета|режим полёта|выключить|отключить
飞行模式|停用|移动数据|格式化|飛航模式|機内モード|オフにする|無効にする|비행기 모드|끄기|해제|हवाई जहाज़ मोड|बंद करें|وضع الطيران|إيقاف|تعطيل|chế độ máy bay|mode pesawat|โหมดเครื่องบิน""",
    EffectKind.POWER: """
power off|shut down|restart|reboot|switch off|lock phone|slide to power off|ausschalten|neu starten|neustart|herunterfahren|éteindre|redémarrer|apagar|reiniciar|desligar
spegni|riavvia|uitzetten|opnieuw opstarten|wyłącz telefon|uruchom ponownie|stäng av|starta om|yeniden başlat|restartovat|выключить|перезагрузить|перезагрузка
关机|重启|重新启动|關機|重新啟動|電源を切る|再起動|전원 끄기|다시 시작|재부팅|पावर ऑफ़|रीस्टार्ट करें|إيقاف التشغيل|إعادة التشغيل|tắt nguồn|khởi động lại|matikan daya|mulai ulang""",
    EffectKind.DELETION: """
delete|delete all|delete forever|delete account|remove|remove all|erase|erase all data|erase everything|reset|factory reset|empty trash|empty bin|clear data|clear all data|clear storage
discard|block|unfriend|unfollow|move to trash|move to bin|wipe|destroy|purge|delete chat|clear history|clear chat|delete everything|cancel subscription|cancel order|trash|block and report|report spam
lösche|lösche alles|entferne|supprime|supprimez|elimine|borra|borre|apague tudo|exclua|删掉|löschen|alle löschen|endgültig löschen|entfernen|zurücksetzen|auf werkseinstellungen zurücksetzen|papierkorb leeren|in den papierkorb|in den papierkorb verschieben|daten löschen|verwerfen|blockieren|alles löschen|konto löschen
supprimer|tout supprimer|supprimer définitivement|effacer|tout effacer|réinitialiser|vider la corbeille|mettre à la corbeille|bloquer|retirer de la liste|supprimer le compte
eliminar|eliminar todo|borrar|borrar todo|suprimir|quitar|restablecer|vaciar papelera|mover a la papelera|enviar a la papelera|bloquear|descartar|eliminar cuenta|restablecer de fábrica
excluir|excluir tudo|apagar tudo|remover|redefinir|esvaziar lixeira|limpar dados|elimina|elimina tutto|cancella|cancella tutto|rimuovi|ripristina|svuota cestino|blocca
verwijderen|alles verwijderen|wissen|prullenbak leegmaken|blokkeren|usuń|usuń wszystko|wyczyść|opróżnij kosz|zablokuj|ta bort|radera|radera allt|töm papperskorgen|slet|slett|poista|tyhjennä
sil|tümünü sil|sıfırla|çöpü boşalt|engelle|smazat|odstranit|vymazat|törlés|șterge|удалить|удалить все|удалить всё|стереть|сбросить|очистить|очистить корзину|заблокировать|видалити|διαγραφή
删除|全部删除|清空|清除|移除|抹掉|恢复出厂设置|还原|拉黑|屏蔽|刪除|清除資料|削除|すべて削除|消去|ゴミ箱を空にする|初期化|ブロック|삭제|모두 삭제|지우기|초기화|휴지통 비우기|차단
मिटाएं|हटाएं|सब मिटाएं|हटाना|रीसेट करें|ब्लॉक करें|حذف|حذف الكل|مسح|إزالة|إعادة الضبط|حظر|xóa|xoá|xóa tất cả|hapus|hapus semua|setel ulang|blokir|ลบ|ลบทั้งหมด|รีเซ็ต|מחק|מחיקה""",
    EffectKind.ACCOUNT: """
log out|logout|sign out|sign up|leave group|leave chat|deactivate|deactivate account|close account|join|change password|sign|sign document|sign contract|accept invitation
abmelden|ausloggen|gruppe verlassen|konto schließen|beitreten|unterschreiben|se déconnecter|déconnexion|quitter le groupe|désactiver le compte|rejoindre|signer
cerrar sesión|salir del grupo|desactivar cuenta|unirse|firmar|sair|encerrar sessão|terminar sessão|sair do grupo|entrar no grupo|esci dal gruppo|disconnetti|firma
afmelden|uitloggen|wyloguj|wyloguj się|logga ut|log ud|logg ut|kirjaudu ulos|çıkış yap|oturumu kapat|odhlásit|kijelentkezés|выйти из аккаунта|выйти из группы|выйти|выход|esci|подписать
退出登录|登出|退出群聊|注销账号|注销|签署|加入群聊|ログアウト|グループを退会|退会|로그아웃|그룹 나가기|탈퇴|लॉग आउट|साइन आउट|تسجيل الخروج|مغادرة المجموعة|đăng xuất|keluar|ออกจากระบบ""",
    EffectKind.CONFIRMATION: """
confirm|verify|claim|claim now|claim prize|claim reward|get reward|unlock now|bestätigen|verifizieren|bestätige|confirmez|confirme|confirma|jetzt sichern|gewinn abholen|einlösen
confirmer|vérifier mon compte|récupérer mon gain|réclamer|confirmar|verificar|reclamar|reclamar premio|resgatar|conferma|verifica account|riscatta|领取|立即领取|受け取る|받기|получить приз|забрать
bevestigen|potwierdź|bekräfta|bekræft|vahvista|potvrdit|megerősítés|confirmă|подтвердить|підтвердити
确认|确定提交|確認|確認する|확인하기|पुष्टि करें|تأكيد|xác nhận|konfirmasi|ยืนยัน|אישור""",
}
EFFECT_SYMBOLS: Mapping[EffectKind, str] = {
    EffectKind.CALL: "📞☎📲🤙✆📱",
    EffectKind.MESSAGE: "➤➢➣📤📨📩✉💌⇪🕊🛫✈",
    EffectKind.PURCHASE: "🛒🛍💳💰💸💵💶💷🪙₿",
    EffectKind.DELETION: "🗑🚮🧹",
    EffectKind.POWER: "⏻⏼⭘",
    EffectKind.CONFIRMATION: "✔✓✅☑👍",
}
CONFIRMING = """
ok|okay|yes|continue|proceed|accept|agree|i agree|next|done|finish|go|apply|understood|got it|sure|yes please|yes continue
ja|weiter|fortfahren|akzeptieren|zustimmen|einverstanden|fertig|verstanden|ich stimme zu|oui|continuer|accepter|d accord|suivant|terminer|j accepte|valider
sí|si|continuar|aceptar|acepto|siguiente|de acuerdo|listo|hecho|finalizar|terminar|sim|aceitar|concordo|seguinte|avançar|concluir|confirmo
sì|continua|accetta|avanti|fine|d accordo|doorgaan|accepteren|akkoord|volgende|klaar|tak|dalej|kontynuuj|akceptuję|zgadzam się|gotowe|fortsätt|godkänn|evet|devam|devam et|kabul et|tamam|ano|pokračovat|souhlasím
да|ок|продолжить|принять|согласен|далее|готово|так|продовжити
是|好|好的|确定|继续|接受|同意|下一步|完成|確定|繼續|はい|続ける|続行|同意する|次へ|完了|예|네|확인|계속|동의|다음|완료
हाँ|हां|ठीक है|जारी रखें|स्वीकार करें|सहमत|आगे|نعم|موافق|حسنا|متابعة|قبول|أوافق|التالي|có|đồng ý|tiếp tục|ya|lanjut|lanjutkan|setuju|ตกลง|ใช่|ดำเนินการต่อ|כן"""
LURES = """
won|winner|prize|gift card|reward|congratulations|you have been selected|virus|infected|security alert|expired|must be updated|update required|verify your|suspended|your account will
gewonnen|gewinn|gewinner|glückwunsch|gutschein|infiziert|sicherheitswarnung|abgelaufen|muss aktualisiert werden|gesperrt|gagné|gagnant|félicitations|infecté|expiré|doit être mis à jour|alerte de sécurité|suspendu
ganado|ganador|premio|felicidades|felicitaciones|infectado|caducado|debe actualizarse|alerta de seguridad|suspendida|ganhou|parabéns|prêmio|expirou|deve ser atualizado|hai vinto|congratulazioni|infetto|scaduto
выиграли|приз|поздравляем|вирус|заражен|истек|заблокирован|中奖|恭喜|奖品|病毒|过期|安全警告|必须更新|当選|おめでとう|ウイルス|期限切れ|당첨|축하|바이러스|만료|जीत|बधाई|वायरस|ربحت|مبروك|فيروس"""
# Words that update an app in a store or beside an app's name; elsewhere they load a page or a list again.
REFRESHING = "update|aktualisieren|mettre à jour|actualiser|actualizar|atualizar|aggiorna|bijwerken|обновить|更新|更新する|업데이트|अपडेट करें|تحديث|cập nhật|perbarui"
REFRESHED = """
list|the list|page|view|feed|inbox|cart|basket|data|weather|status|profile|table|results|screen|content|liste|seite|ansicht|warenkorb|daten|wetter
die liste|la liste|la page|le panier|les données|lista|la lista|página|la página|carrito|datos|dados|tiempo|carrinho|pagina|weergave|список|страницу|данные|корзину|ленту
列表|页面|数据|購物車|购物车|一覧|ページ|목록|페이지"""
HARMLESS = """
back|navigate up|cancel|close|dismiss|no|no thanks|not now|later|don t allow|deny|decline|reject|skip|more|more options|menu|search|home|up|exit|never|clear|edit|show|hide|details|end call|hang up|mute|speaker|keypad
contacts|recents|favorites|favourites|voicemail|history|add to cart|add to basket|add to bag|add to wishlist|change|undo|ask later|don t send|don t delete|keep|expand|collapse|add contact|new contact|backspace|filter|sort|help
zurück|abbrechen|schließen|nein|nein danke|nicht jetzt|später|nicht zulassen|ablehnen|überspringen|mehr|weitere optionen|menü|suchen|suche|nach oben|auflegen|in den warenkorb|zum warenkorb hinzufügen|bearbeiten|ändern|kontakte|favoriten|anrufliste|verlauf|behalten|nicht senden
retour|annuler|fermer|non|non merci|pas maintenant|plus tard|ne pas autoriser|refuser|ignorer|plus|plus d options|rechercher|recherche|raccrocher|ajouter au panier|modifier|contacts|favoris|récents|garder
atrás|volver|cancelar|cerrar|no gracias|ahora no|más tarde|no permitir|denegar|rechazar|omitir|más|más opciones|menú|buscar|colgar|añadir al carrito|agregar al carrito|añadir a la cesta|editar|cambiar|contactos|favoritos|recientes
voltar|fechar|não|não obrigado|agora não|mais tarde|não permitir|negar|recusar|pular|mais|mais opções|pesquisar|desligar chamada|adicionar ao carrinho|adicionar à sacola|alterar|contatos|recentes
indietro|annulla|chiudi|no grazie|non ora|più tardi|non consentire|nega|rifiuta|salta|altro|cerca|riaggancia|aggiungi al carrello|modifica|contatti|preferiti|recenti
terug|annuleren|sluiten|nee|niet nu|weigeren|overslaan|meer|zoeken|in winkelwagen|wstecz|anuluj|zamknij|nie|nie teraz|odrzuć|pomiń|więcej|szukaj|dodaj do koszyka|tillbaka|avbryt|stäng|nej|inte nu|neka|hoppa över|sök|lägg i varukorgen
geri|iptal|kapat|hayır|şimdi değil|reddet|atla|daha fazla|ara ve bul|sepete ekle|zpět|zrušit|zavřít|ne|teď ne|odmítnout|hledat|do košíku|назад|отмена|закрыть|нет|не сейчас|позже|запретить|отклонить|пропустить|ещё|поиск|в корзину|добавить в корзину|сбросить вызов|контакты|недавние
返回|取消|关闭|否|不|以后再说|不允许|拒绝|跳过|更多|更多选项|菜单|搜索|挂断|加入购物车|编辑|更改|联系人|收藏|最近|關閉|不允許|拒絕|加入購物車|戻る|キャンセル|閉じる|いいえ|後で|許可しない|拒否|スキップ|その他|検索|カートに入れる|通話終了|連絡先
뒤로|취소|닫기|아니요|나중에|허용 안함|허용 안 함|거부|건너뛰기|더보기|검색|장바구니|장바구니에 담기|통화 종료|연락처|वापस|रद्द करें|बंद करो|नहीं|अभी नहीं|अस्वीकार करें|छोड़ें|खोजें|कार्ट में जोड़ें
رجوع|إلغاء|إغلاق|لا|لا شكرا|ليس الآن|لاحقا|عدم السماح|رفض|تخطي|المزيد|بحث|أضف إلى السلة|إنهاء المكالمة|جهات الاتصال|quay lại|hủy|đóng|không|để sau|từ chối|bỏ qua|tìm kiếm|thêm vào giỏ|kembali|batal|tutup|tidak|nanti|tolak|lewati|cari|ย้อนกลับ|ยกเลิก|ปิด|ไม่|ค้นหา|ביטול|לא|סגור"""
# A verb before one of these words is a noun: the history of calls, the details of an order.
# English words that are nouns as often: they count where a label begins with them.
NOUNS = (
    "book|order|post|share|call|transfer|charge|tip|bid|rent|trade|exchange|sign|block|format|pair|trust|reset|dial|tweet|"
    "comment|vote|answer|join|stake|deposit|trash|enable|approve|remove|update|invest|swap|comment|jaa|ara|sil|kur|ring|bel"
)
NOUN_ENDINGS = "history|details|list|log|settings|status|info|options|center|verlauf|historial|historique"
SECRET = re.compile(
    r"\b(?:password|passwort|kennwort|passcode|pin|pin code|cvv|cvc|otp|contraseña|clave|mot de passe|code secret|senha|"
    r"passphrase|parola|wachtwoord|hasło|lösenord|şifre|heslo|пароль|пин код|pin kod)\b|密码|口令|验证码|密碼|パスワード|暗証番号|"
    r"비밀번호|पासवर्ड|पिन|كلمة المرور|mật khẩu|kata sandi|รหัสผ่าน",
    re.IGNORECASE,
)
PRICE = re.compile(
    r"(?:[$€£¥₹₽₩₺₫฿₴¢]|\b(?:usd|eur|gbp|chf|jpy|cny|rmb|inr|brl|pln|sek|nok|dkk|try|rub|krw|r\$|kr|zł)\b)\s?\d|"
    r"\d[\d.,\s]*\s?(?:[$€£¥₹₽₩₺₫฿元円원]|usd|eur|gbp|chf|kr\b|zł|руб)|\b\d{1,3}(?:[.,\s]?\d{3})*[.,]\d{2}\b",
    re.IGNORECASE,
)
PAYMENT = re.compile(
    r"[•*·x]{2,}\s?\d{4}|\b(?:visa|mastercard|maestro|amex|paypal|klarna|google pay|apple pay|gpay|alipay|upi|paytm|pix|"
    r"boleto|ideal|sepa|iban|credit card|debit card|card ending|ending in|on file|payment method|kreditkarte|lastschrift|karte endet|"
    r"zahlungsart|zahlungsmethode|carte bancaire|carte se terminant|moyen de paiement|tarjeta|método de pago|forma de pago|"
    r"cartão|forma de pagamento|carta di credito|metodo di pagamento|betaalmethode|karta|metoda płatności|способ оплаты|карта|"
    r"kredi kartı|ödeme yöntemi|kartu kredit)\b|支付方式|付款方式|信用卡|银行卡|尾号|余额|支付宝|微信支付|支払い方法|カード|결제수단|카드|कार्ड|"
    r"भुगतान विधि|طريقة الدفع|بطاقة|thẻ|บัตร",
    re.IGNORECASE,
)
SLIDE = re.compile(
    r"\b(?:slide|swipe|drag|schieben|wischen|glisser|desliz\w*|deslizar|scorri)\b|滑动|スライド|밀어", re.IGNORECASE
)
SEARCHING = re.compile(
    r"search|such|recherche|busc|pesquis|cerca|zoek|szukaj|sök|ara\b|поиск|найти|搜|検索|검색|खोज|بحث|tìm|cari|ค้นหา|חיפוש|find|filter|🔍|🔎",
    re.IGNORECASE,
)
