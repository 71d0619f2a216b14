"""Texts of the HTML pages that the servers write, in German, Spanish, French and Chinese, by their English text.

The dashboard's own page has its messages in `servers/page/messages`. `tests/engine/test_page_messages.py` checks that
this table has each text that a page passes to `PageTexts.html`, the error messages that the test names, and no other.
"""

__all__ = ["MESSAGES", "TRANSLATIONS"]

TRANSLATIONS = ("de", "es", "fr", "zh")

MESSAGES: dict[str, tuple[str, str, str, str]] = {
    # Sign-in.
    "Sign in": ("Anmelden", "Iniciar sesión", "Se connecter", "登录"),
    "Password": ("Passwort", "Contraseña", "Mot de passe", "密码"),
    "It is {variable} in {file} of the service home.": (
        "Es ist {variable} in {file} des Dienstordners.",
        "Es {variable} en {file} de la carpeta del servicio.",
        "C’est {variable} dans {file} du dossier du service.",
        "即服务目录下 {file} 中的 {variable}。",
    ),
    "this is not the password": (
        "Das ist nicht das Passwort",
        "Esta no es la contraseña",
        "Ce n’est pas le mot de passe",
        "密码不正确",
    ),
    "too many wrong passwords: try again later": (
        "Zu viele falsche Passwörter: später noch einmal versuchen",
        "Demasiadas contraseñas incorrectas: inténtelo más tarde",
        "Trop de mots de passe erronés : réessayez plus tard",
        "密码错误次数过多：请稍后再试",
    ),
    # Consent of the owner.
    "Allow an agent": ("Einen Agenten zulassen", "Permitir un agente", "Autoriser un agent", "允许智能体"),
    "The word that the agent’s page shows": (
        "Das Wort, das die Seite des Agenten zeigt",
        "La palabra que muestra la página del agente",
        "Le mot que montre la page de l’agent",
        "智能体页面上显示的单词",
    ),
    "Look": ("Ansehen", "Ver", "Voir", "查看"),
    "Only if you have just connected an agent yourself. Enter no word that another person has sent you.": (
        "Nur wenn Sie selbst gerade einen Agenten verbunden haben. Kein Wort eingeben, das jemand anders geschickt hat.",
        "Solo si usted mismo acaba de conectar un agente. No escriba ninguna palabra que le haya enviado otra persona.",
        "Seulement si vous venez de connecter un agent vous-même. Ne saisissez aucun mot envoyé par une autre personne.",
        "仅当您本人刚刚连接了智能体时才输入。请勿输入他人发给您的单词。",
    ),
    "An agent requests access to your phone. It calls itself {name}; this name is not verified.": (
        "Ein Agent möchte Zugriff auf das Telefon. Er nennt sich {name}; dieser Name ist nicht geprüft.",
        "Un agente solicita acceso a su teléfono. Se llama a sí mismo {name}; este nombre no está verificado.",
        "Un agent demande l’accès à votre téléphone. Il se nomme {name} ; ce nom n’est pas vérifié.",
        "一个智能体请求访问您的手机。它自称 {name}；此名称未经验证。",
    ),
    "The request came from {address}. The answer goes to {place}.": (
        "Die Anfrage kam von {address}. Die Antwort geht an {place}.",
        "La solicitud vino de {address}. La respuesta va a {place}.",
        "La demande vient de {address}. La réponse va à {place}.",
        "请求来自 {address}。答复将发送到 {place}。",
    ),
    "The request came from {address}. The answer goes to {place} (a program on the computer that asks).": (
        "Die Anfrage kam von {address}. Die Antwort geht an {place} (ein Programm auf dem Computer, der anfragt).",
        "La solicitud vino de {address}. La respuesta va a {place} (un programa en el ordenador que pregunta).",
        "La demande vient de {address}. La réponse va à {place} (un programme sur l’ordinateur qui demande).",
        "请求来自 {address}。答复将发送到 {place}（发出请求的计算机上的程序）。",
    ),
    "It may": ("Er darf", "Puede", "Il peut", "允许它"),
    "Look at the phone and act on it": (
        "Das Telefon ansehen und bedienen",
        "Ver el teléfono y actuar en él",
        "Regarder le téléphone et agir dessus",
        "查看并操作手机",
    ),
    "Only look: screen, notifications, clipboard, contacts, location": (
        "Nur ansehen: Bildschirm, Benachrichtigungen, Zwischenablage, Kontakte, Standort",
        "Solo ver: pantalla, notificaciones, portapapeles, contactos, ubicación",
        "Seulement regarder : écran, notifications, presse-papiers, contacts, position",
        "仅查看：屏幕、通知、剪贴板、联系人、位置",
    ),
    "For": ("Für", "Durante", "Pour", "期限"),
    "a day": ("einen Tag", "un día", "un jour", "1 天"),
    "a week": ("eine Woche", "una semana", "une semaine", "1 周"),
    "30 days": ("30 Tage", "30 días", "30 jours", "30 天"),
    "a year": ("ein Jahr", "un año", "un an", "1 年"),
    "Allow": ("Erlauben", "Permitir", "Autoriser", "允许"),
    "Refuse": ("Ablehnen", "Rechazar", "Refuser", "拒绝"),
    "Allow it only if you have just connected it yourself. You can end it at any time, among the devices.": (
        "Nur erlauben, wenn Sie ihn selbst gerade verbunden haben. Das lässt sich jederzeit bei den Geräten beenden.",
        "Permítalo solo si acaba de conectarlo usted mismo. Puede terminarlo en cualquier momento, entre los dispositivos.",
        "Ne l’autorisez que si vous venez de le connecter. Vous pouvez y mettre fin à tout moment, parmi les appareils.",
        "仅当您本人刚刚连接了它时才允许。您可以随时在设备列表中将其终止。",
    ),
    "{name} has access now; it is listed among the devices.": (
        "{name} hat jetzt Zugriff und steht bei den Geräten.",
        "{name} ya tiene acceso; figura entre los dispositivos.",
        "{name} a maintenant accès ; il figure parmi les appareils.",
        "{name} 现在可以访问；它已列入设备列表。",
    ),
    "{name} was refused.": (
        "{name} wurde abgelehnt.",
        "{name} ha sido rechazado.",
        "{name} a été refusé.",
        "已拒绝 {name}。",
    ),
    "Back to the dashboard": ("Zurück zum Dashboard", "Volver al panel", "Retour au tableau de bord", "返回控制面板"),
    "the relay refuses": ("Das Relay lehnt ab", "El relay lo rechaza", "Le relais refuse", "中继拒绝了请求"),
    "no agent waits with this word: it may be over already": (
        "Kein Agent wartet mit diesem Wort: Vielleicht ist es schon abgelaufen",
        "Ningún agente espera con esta palabra: quizá ya haya caducado",
        "Aucun agent n’attend avec ce mot : il a peut-être déjà expiré",
        "没有智能体在等待这个单词：它可能已经过期",
    ),
    "this answers another question: look at it again": (
        "Das beantwortet eine andere Anfrage: bitte noch einmal ansehen",
        "Esto responde a otra solicitud: vuelva a verla",
        "Ceci répond à une autre demande : regardez-la de nouveau",
        "这是对另一个请求的答复：请重新查看",
    ),
    # Pages of the relay for the browser that an OAuth client has opened.
    "Waiting for the owner": (
        "Warten auf den Besitzer",
        "Esperando al propietario",
        "En attente du propriétaire",
        "正在等待所有者",
    ),
    "An agent that calls itself “{name}” asks for the phone. If that is you: open the dashboard, choose {link}, and type": (
        "Ein Agent, der sich „{name}“ nennt, bittet um das Telefon. Wenn Sie das sind: das Dashboard öffnen, {link} wählen und eingeben:",
        "Un agente que se llama a sí mismo «{name}» pide el teléfono. Si es usted: abra el panel, elija {link} y escriba",
        "Un agent qui se nomme « {name} » demande le téléphone. Si c’est vous : ouvrez le tableau de bord, choisissez {link} et saisissez",
        "一个自称“{name}”的智能体请求使用手机。如果是您本人：请打开控制面板，选择{link}，然后输入",
    ),
    "or run {command} on the host of the relay. This page goes on by itself. Never type a word that another person has sent you.": (
        "oder auf dem Host des Relays {command} ausführen. Diese Seite geht von selbst weiter. Nie ein Wort eingeben, das jemand anders geschickt hat.",
        "o ejecute {command} en el host del relay. Esta página continúa por sí sola. No escriba nunca una palabra que le haya enviado otra persona.",
        "ou exécutez {command} sur l’hôte du relais. Cette page continue d’elle-même. Ne saisissez jamais un mot envoyé par une autre personne.",
        "或在中继的主机上运行 {command}。此页面会自动继续。切勿输入他人发给您的单词。",
    ),
    "This question is over": (
        "Diese Anfrage ist beendet",
        "Esta solicitud ha terminado",
        "Cette demande est terminée",
        "此请求已结束",
    ),
    "Go back to the agent, and connect again if it asks for that.": (
        "Zurück zum Agenten gehen und neu verbinden, wenn er darum bittet.",
        "Vuelva al agente y conéctelo de nuevo si lo pide.",
        "Revenez à l’agent, et connectez-le de nouveau s’il le demande.",
        "请返回智能体，如果它要求，请重新连接。",
    ),
    "This cannot be asked": (
        "Diese Anfrage ist nicht möglich",
        "Esta solicitud no es posible",
        "Cette demande est impossible",
        "无法提出此请求",
    ),
    "The agent has sent you here with a mistake: {reason}.": (
        "Der Agent hat Sie mit einem Fehler hierher geschickt: {reason}.",
        "El agente le ha enviado aquí con un error: {reason}.",
        "L’agent vous a envoyé ici avec une erreur : {reason}.",
        "智能体将您带到此处时出错：{reason}。",
    ),
    "over plain HTTP nothing is allowed from elsewhere: HTTPS is needed": (
        "Über einfaches HTTP ist von anderswo nichts erlaubt: HTTPS ist nötig",
        "por HTTP sin cifrar no se permite nada desde fuera: se necesita HTTPS",
        "par HTTP non chiffré, rien n’est permis depuis ailleurs : il faut HTTPS",
        "通过普通 HTTP 不允许来自其他地方的请求：需要 HTTPS",
    ),
    "too many questions wait for an answer: try again later": (
        "Zu viele Anfragen warten auf eine Antwort: später noch einmal versuchen",
        "demasiadas solicitudes esperan una respuesta: inténtelo más tarde",
        "trop de demandes attendent une réponse : réessayez plus tard",
        "等待答复的请求过多：请稍后再试",
    ),
    # Viewer of the OpenAPI document.
    "Search": ("Suchen", "Buscar", "Rechercher", "搜索"),
    "Search routes and shapes": (
        "Routen und Formen suchen",
        "Buscar rutas y formas",
        "Rechercher des routes et des formes",
        "搜索路由和结构",
    ),
    "Request": ("Anfrage", "Solicitud", "Requête", "请求"),
    "Answers": ("Antworten", "Respuestas", "Réponses", "响应"),
    "Shapes": ("Formen", "Formas", "Formes", "结构"),
    "{count} found": ("{count} gefunden", "{count} encontrados", "{count} trouvés", "找到 {count} 项"),
    "Not there: {reason}": (
        "Nicht da: {reason}",
        "No disponible: {reason}",
        "Indisponible : {reason}",
        "不可用：{reason}",
    ),
}
