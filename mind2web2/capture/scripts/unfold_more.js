// Presses "show more" and its like where that stays on the page, or only counts them; returns how many there were.
function (limit, pressesEach, isCountOnly) {
  const t = globalThis.pageTools;
  const c = globalThis.pageControls;
  const state = t.kept.unfolding;
  const WORDS = [
    "(?:show|see|view|read|load|display|get|expand)\\s+(?:\\d[\\d.,]*\\s+)?(?:more|all|full|the full|the rest|everything|remaining|older|next \\d+|additional|entire|complete)\\b.{0,40}",
    "(?:show|see|view|load)\\s+\\d[\\d.,]*\\s+.{1,30}", "(?:\\d[\\d.,]*\\s+)?more(?:\\s+(?:results?|reviews?|comments?|items?|details?|info(?:rmation)?|articles?|posts?|entries|replies|answers?|text|products?|questions?|rows?))?",
    "expand(?: all)?", "continue reading", "full (?:description|text|story|bio|specifications|specs|details)", "older (?:posts|comments|entries)", "\\+\\s?\\d+ more",
    "(?:mehr|weitere)(?: \\S+)?(?: (?:an)?zeigen| laden| lesen| erfahren| anzeigen)?", "weiterlesen", "alle(?: \\S+){0,2} (?:an)?zeigen", "(?:voir|afficher|lire|charger|en (?:savoir|voir)) (?:plus|tout|tous|toutes|la suite).{0,30}", "lire la suite", "plus de (?:résultats|détails|commentaires|avis)",
    "(?:ver|mostrar|leer|cargar|ler|carregar|exibir) (?:más|mais|todo|todos|todas|tudo).{0,30}", "(?:saber|saiba) (?:más|mais)", "(?:mostra|leggi|vedi|carica|visualizza) (?:di più|tutto|tutti|tutte|altro|altri|altre|ancora).{0,30}", "continua a leggere",
    "(?:toon|lees|laad|bekijk) (?:meer|alles|alle).{0,30}", "meer (?:lezen|laden|tonen|weergeven|bekijken)", "(?:visa|läs|ladda) (?:mer|fler|alla).{0,20}", "(?:vis|læs|les|indlæs|last inn) (?:mere|mer|flere|alle).{0,20}", "näytä (?:lisää|kaikki).{0,20}", "lue lisää",
    "(?:pokaż|zobacz|czytaj|wczytaj|załaduj) (?:więcej|wszystkie|wszystko|dalej).{0,20}", "czytaj dalej", "(?:zobrazit|načíst|číst) (?:více|další|vše|dál).{0,20}", "(?:показать|читать|загрузить|смотреть) (?:ещ[её]|больше|все|всё|далее|полностью).{0,20}", "ещ[её]", "подробнее", "(?:показати|читати|завантажити) (?:більше|ще|все|далі).{0,20}", "(?:daha fazla|devamını|tümünü).{0,20}",
    "(?:もっと|さらに|続きを|すべて|全て).{0,12}", "(?:查看|显示|顯示|加载|載入|展开|展開|阅读|閱讀|更多|全部|全文).{0,6}(?:更多|全部|全文|内容)?", "(?:더\\s?보기|더\\s?읽기|모두\\s?보기|전체\\s?보기|펼치기)", "(?:عرض|قراءة|تحميل|إظهار|اقرأ) (?:المزيد|الكل|المزيد من.{0,20})",
  ];
  const ELSEWHERE = /\b(?:photos?|pictures?|images?|maps?|videos?|gallery|fotos?|bilder|karte|on google|in the app|options|actions|filters?|tools|share|languages?|less|prices? on)\b/iu;
  state.morePattern ??= new RegExp(`^(?:${WORDS.join("|")})$`, "iu");
  const nameOf = (element) => t.normal(t.textContent(element).slice(0, 200) || t.labelOf(element)).replace(/\([\d.,\s]+\)|[.…›»▼▾▽∨⌄↓+→>:]+$|^[+▼▾⌄↓]+/gu, "").trim();
  const pressed = [];
  const view = t.look();
  const selector = "button, [role=button], a, span:not(pre *), div, p, label, input[type=button], summary ~ button, td, li";
  for (const control of t.all(selector)) {
    if (pressed.length >= limit) break;
    if (t.textContent(control).length > 120) continue;
    const name = nameOf(control);
    if (name.length < 2 || name.length > 60 || !state.morePattern.test(name) || ELSEWHERE.test(name)) continue;
    const isButton = t.matches(control, "button, [role=button], a, input[type=button]");
    if (!isButton && (t.styleOf(control).cursor !== "pointer" || t.closest(control, "a, button, [role=button]"))) continue;
    if (!isButton && [...t.queryIn(control, "a, button, [role=button]")].length) continue;
    if (!isButton && pressed.some((one) => t.holds(one, control) || t.holds(control, one))) continue;
    if (!view.isSeen(control) || c.isForbidden(control) || !(c.mayPress(control) || (t.tag(control) === "input" && !c.isRealLink(control)))) continue;
    const times = state.morePresses.get(control) ?? 0;
    if ((times >= pressesEach && !isCountOnly) || state.futile.has(control) || state.pressed.has(control)) continue;
    if (t.attribute(control, "aria-expanded") === "true") continue;
    if (!isCountOnly) state.morePresses.set(control, times + 1);
    pressed.push(control);
  }
  if (!pressed.length || isCountOnly) return pressed.length;
  state.beforeMore = [...t.blocksOf(t.look().texts()).values()];
  state.baseline ??= state.beforeMore;
  state.moreNow = pressed.map((control) => ({ control, name: nameOf(control), length: t.textContent(control).length }));
  state.addressBefore = location.href;
  state.presses += pressed.length;
  for (const control of pressed) t.press(control);
  return pressed.length;
}
