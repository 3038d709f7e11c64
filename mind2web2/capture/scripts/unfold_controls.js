// What on this page a user could press to see more, kept as `globalThis.pageControls`.
function () {
  const t = globalThis.pageTools;
  const PAGE_PARTS = "nav, [role=navigation], [role=menubar], [role=menu], [role=search], [role=toolbar], [role=listbox],"
    + " [role=combobox], [role=banner], select, form[role=search], video, audio, [contenteditable=''], [contenteditable=true]";
  const POPUP_ROLES = /^(combobox|menuitem|menuitemcheckbox|menuitemradio|option|switch|checkbox|radio|slider|spinbutton|textbox|searchbox|row)$/;
  const POPUP_PANELS = "nav, [role=menu], [role=listbox], [role=tooltip], [role=dialog], [role=alertdialog], [role=navigation], [role=search], dialog, [popover], script, style, template, noscript";
  // Parts of a line, such as the links that appear beside a heading under the pointer.
  const NO_SECTIONS = "a, button, label, input, select, textarea, sup, sub, svg, img";
  // What opens a part of the page's frame rather than of its content, in the languages that answers cite most.
  const TOOL_WORDS = "search|suche[n]?|recherche[r]?|buscar|cerca|zoeken|szukaj|busca|sök|поиск|検索|搜索|languages?|sprache[n]?|langues?|idiomas?|lingua|taal|język|язык|言語|语言|"
    + "countr(?:y|ies)|land|region|currency|währung|log ?in|sign ?in|sign ?up|register|anmelden|einloggen|connexion|se connecter|iniciar sesi[óo]n|accedi|inloggen|entrar|войти|ログイン|登录|"
    + "(?:my )?account|(?:mein )?konto|mon compte|mi cuenta|profile?|cart|basket|bag|warenkorb|panier|carrito|carrello|winkelwagen|koszyk|корзина|wishlist|share|teilen|partager|compartir|condividi|delen|"
    + "cookies?|cookie settings|notifications?|chat|theme|dark mode|accessibility|more options|options|actions";
  const MENU_WORDS = "menu|men[üuú]|navigation|navegaci[óo]n|nav|settings|einstellungen";
  const named = (words) => new RegExp(`^(?:(?:open|close|toggle|show|main|site|mobile|öffne[n]?|ouvrir|abrir|apri)\\s+)*(?:the\\s+)?(?:${words})(?:\\s+(?:menu|menü))?$`, "iu");
  const IS_TOOL = named(TOOL_WORDS);
  const IS_TOOL_OR_MENU = named(`${TOOL_WORDS}|${MENU_WORDS}`);
  const FRAME_NAMES = /(?:^|[\s_-])(?:hamburger|burger|nav(?:bar)?-?toggle[r]?|menu-?(?:toggle[r]?|button|btn|icon|trigger|open)|mobile-?(?:menu|nav)|off-?canvas|search-?(?:toggle|button|btn|icon|trigger|open)|lang(?:uage)?-?(?:switch(?:er)?|select(?:or)?|menu|toggle|picker)|cookie|consent)(?:[\s_-]|$)/i;
  const DANGEROUS_WORDS = new RegExp("^(?:delete|remove|buy|add|subscribe|unsubscribe|log ?out|sign ?out|play|pause|pay|order|checkout|check out|book|reserve|submit|send|save|vote|like|follow|"
    + "report|block|download|print|upload|edit|cancel|confirm|apply|reset|clear|install|join|donate|call|email|"
    + "löschen|entfernen|kaufen|in den warenkorb|bestellen|abonnieren|abmelden|abspielen|drucken|senden|supprimer|acheter|ajouter|commander|s'abonner|se déconnecter|imprimer|envoyer|"
    + "eliminar|borrar|comprar|añadir|suscribirse|cerrar sesión|imprimir|enviar|elimina|acquista|compra|aggiungi|iscriviti|esci|stampa|verwijderen|kopen|bestel|toevoegen|uitloggen|"
    + "usuń|kup|dodaj|zamów|удалить|купить|削除|購入|删除|购买)(?:\\s+\\S+){0,3}$", "iu");

  const MAX_TABS = 80;
  const MAX_GUESSES = 60;
  const MAX_GUESSED_CHARS = 120;
  const MAX_UNDECLARED_TABS = 60;
  const isRealLink = (element) => {
    const link = t.closest(element, "a[href], area[href]");
    if (!link) return false;
    const href = t.attribute(link, "href").trim();
    if (href === "" || href === "#" || /^javascript:/i.test(href)) return false;
    if (href.startsWith("#")) return /^#[!/]/.test(href);
    if (!/#[^!/]/.test(href)) return true;
    try {
      const goal = new URL(href, document.baseURI);
      return goal.href.replace(/#.*/, "") !== location.href.replace(/#.*/, "");
    } catch { return true; }
  };
  const isPageHeader = (element) => {
    const header = t.closest(element, "header");
    return header !== null && !t.closest(header, "article, main, section, [role=main]") && !t.queryIn(header, "main, article").length;
  };
  const isInHeading = (element) => t.closest(element, "h1, h2, h3, h4, h5, h6, dt, [role=heading], summary") !== null;
  // What of a tab or a head is to be pressed: the only thing to press within it, if there is one.
  const pressTarget = (element) => {
    const inner = t.queryIn(element, "a, button, [role=button]");
    return inner.length === 1 && t.labelOf(inner[0]) === t.labelOf(element) ? inner[0] : element;
  };
  const isOff = (element) => t.attribute(element, "aria-disabled") === "true" || t.matches(element, ":disabled");
  const isSubmit = (element) => {
    const kind = (t.attribute(element, "type") ?? "").toLowerCase();
    if (kind || t.tag(element) !== "button" || t.hasAttribute(element, "aria-expanded")) return kind === "submit";
    const form = t.closest(element, "form");
    // Some sites put all of a page into one form.
    return form !== null && t.queryIn(form, "input:not([type=hidden]), textarea, select").length > 0
      && t.textContent(form).length < 0.5 * t.textContent(t.body()).length;
  };
  // A name such as "Search" is that of a tool; the same word in a heading is the title of a section.
  const isOfFrame = (element) => {
    if (isInHeading(element)) return false;
    // A site's menu is never within its content; what is called so there is a restaurant's.
    const pattern = t.closest(element, "main, article, [role=main]") ? IS_TOOL : IS_TOOL_OR_MENU;
    return pattern.test(t.labelOf(element)) || FRAME_NAMES.test(`${t.className(element)} ${t.attribute(element, "id") ?? ""}`);
  };
  const isDangerous = (element) => !isInHeading(element) && DANGEROUS_WORDS.test(t.labelOf(element));
  // A tab may be a link to what it loads into its panel; its press goes to scripts alone.
  const mayShow = (element) => (!isRealLink(element) || (t.attribute(element, "role") === "tab" && namedPanels(element).length > 0)) && !isOff(element);
  // What belongs to a press that must not be made may be shown without it.
  const mayPress = (element) =>
    mayShow(element) && !isSubmit(element) && !isDangerous(element)
    && !["input", "select", "textarea", "video", "audio"].includes(t.tag(element));
  const isForbidden = (element, allowNavigation = false) => {
    const popup = t.attribute(element, "aria-haspopup");
    if (popup && popup !== "false") return true;
    if (POPUP_ROLES.test(t.attribute(element, "role") ?? "")) return true;
    if (!allowNavigation && (t.closest(element, PAGE_PARTS) || isPageHeader(element))) return true;
    return isOfFrame(element);
  };

  const targetsOf = (element) => {
    const names = (t.attribute(element, "aria-controls") ?? "").split(/\s+/);
    for (const name of ["data-bs-target", "data-target", "data-tab", "data-tab-target", "data-panel", "data-content", "data-toggle-target", "data-collapse", "href", "rel"]) {
      const value = t.attribute(element, name);
      if (value && value.length < 200) names.push(value.replace(/^.*#/, name === "href" ? "#" : "").trim());
    }
    for (const match of (t.attribute(element, "onclick") ?? "").slice(0, 500).matchAll(/['"]#?([\w:.-]{1,80})['"]/g)) names.push(match[1]);
    return names;
  };
  // The panels that a control names, by whatever attribute.
  const namedPanels = (element) => {
    const found = [];
    for (const name of targetsOf(element)) {
      const id = name.startsWith("#") ? name.slice(1) : name;
      let panel = null;
      try { panel = t.byId(element, id) ?? t.byId(element, decodeURIComponent(id)); } catch { panel = t.byId(element, id); }
      if (!panel && /^\.[\w-]+$/.test(name)) panel = t.queryIn(document, name)[0] ?? null;
      if (panel && panel !== element && !t.holds(panel, element) && panel !== t.body() && panel !== t.root) found.push(panel);
    }
    return [...new Set(found)];
  };
  // The block that a control belongs to: what holds nothing but it.
  const blockOf = (element) => {
    const length = t.normal(t.textContent(element)).length;
    let at = element;
    for (let i = 0; i < 4; i++) {
      const parent = t.parentOf(at);
      if (!parent || parent === t.body() || t.normal(t.textContent(parent)).length > length + 3) break;
      at = parent;
    }
    return at;
  };
  const nextPanel = (element) => {
    const length = t.normal(t.textContent(element)).length;
    let at = element;
    for (let i = 0; i < 4 && at; i++) {
      const next = t.nextElement(at);
      if (next && (t.normal(t.textContent(next)).length > 0 || i > 0)) return next;
      at = t.parentOf(at);
      if (!at || at === t.body() || t.normal(t.textContent(at)).length > length + 3) return null;
    }
    return null;
  };
  const panelOf = (element) => namedPanels(element)[0] ?? nextPanel(element);
  const hasText = (element) => /\S/.test(t.textContent(element));
  const isShown = (element) => t.look().texts(element, 1).size > 0;

  const expanders = (scopes) => {
    const found = [];
    const view = t.look();
    const selector = "[aria-expanded=false], [data-bs-toggle=collapse], [data-toggle=collapse]";
    for (const control of t.all(selector, scopes)) {
      if (!view.isSeen(control) || isForbidden(control) || t.hasAttribute(control, "popovertarget")) continue;
      const named = namedPanels(control);
      if (named.some((panel) => t.matches(panel, POPUP_PANELS) || isShown(panel))) continue;
      if (t.attribute(control, "role") === "tab") continue;
      found.push({ kind: "expandable section", control });
    }
    return found;
  };
  const outerHeight = t.getter(HTMLElement.prototype, "offsetHeight");
  const MAX_SHUT_PX = 4; // with its borders
  // All but the many elements that hold a word or two.
  const NO_WORDS = ":not(a, abbr, b, br, code, em, i, img, input, link, meta, option, path, pre span, script, strong, style, sub, sup, use)";
  // Whatever else can be pressed and has its hidden section right behind it.
  const toggles = (scopes, limit) => {
    const found = [];
    const view = t.look();
    let guesses = 0;
    for (const scope of scopes) for (const panel of t.queryIn(scope, NO_WORDS)) {
      if (found.length >= limit) return found;
      const head = t.previousElement(panel);
      if (!head || !t.isHtml(panel)) continue;
      if (view.isSeen(panel) && (t.clientHeight(panel) > 1 || outerHeight(panel) > MAX_SHUT_PX || t.styleOf(panel).overflowY === "visible")) continue;
      if (t.matches(panel, POPUP_PANELS) || t.matches(panel, NO_SECTIONS) || !view.isSeen(head) || !hasText(head)) continue;
      const length = t.normal(t.textContent(head)).length;
      if (length > 300 || !hasText(panel)) continue;
      const style = t.styleOf(panel);
      if (style.position === "absolute" || style.position === "fixed") continue;
      // A head that listens for clicks need not look like it: a press that opens the section shows it.
      const sure = pressableOf(head, length);
      if (!sure && (length > MAX_GUESSED_CHARS || guesses++ >= MAX_GUESSES || !mayGuess(head))) continue;
      const control = sure ?? head;
      if (!mayShow(control) || isForbidden(control) || t.hasAttribute(control, "aria-expanded")) continue;
      found.push({ kind: "collapsed section", control, panel, isGuess: !sure });
    }
    return found;
  };
  const mayGuess = (head) => mayPress(head) && t.tag(head) !== "label" && !t.queryIn(head, "label, input").length;
  const isPressable = (element) => t.matches(element, "button, [role=button], [onclick]") || t.styleOf(element).cursor === "pointer";
  const pressableOf = (head, length) => {
    const inner = [...t.queryIn(head, "button, [role=button], [onclick], a")].filter((one) => t.normal(t.textContent(one)).length >= length - 3);
    if (inner.length) return inner[0];
    return isPressable(head) ? head : null;
  };
  const listOf = (tab) => t.parentOf(t.tag(t.parentOf(tab)) === "li" ? t.parentOf(tab) : tab) ?? t.body();
  const tabs = (scopes) => {
    const groups = new Map();
    const view = t.look();
    const add = (list, tab) => { if (!groups.has(list)) groups.set(list, []); groups.get(list).push(tab); };
    for (const tab of t.all("[role=tab], [data-bs-toggle=tab], [data-toggle=tab], [data-bs-toggle=pill], [data-toggle=pill]", scopes)) {
      if (!view.isSeen(tab)) continue;
      add(t.closest(tab, "[role=tablist]") ?? t.parentOf(t.parentOf(tab) ?? tab) ?? t.body(), tab);
    }
    const known = new Set([...groups.values()].flat());
    // Tabs without a word of ARIA: presses that name a section by its id, of which some are hidden and one is not.
    for (const tab of t.all("a[href*='#'], [data-tab], [data-target], [data-tab-target], [data-panel], [onclick]", scopes)) {
      if (known.has(tab) || isRealLink(tab) || !view.isSeen(tab) || t.hasAttribute(tab, "aria-expanded") || !t.labelOf(tab)) continue;
      if ([...known].some((other) => t.holds(other, tab) || t.holds(tab, other))) continue;
      if (t.namesNothing(tab) && !isOfFrame(tab)) add(listOf(tab), tab);
      const panel = namedPanels(tab).find((one) => !t.matches(one, POPUP_PANELS) && !t.closest(one, "nav, header, dialog, [role=dialog], [aria-modal=true]"));
      if (!panel || t.tag(panel) === "a" || FRAME_NAMES.test(`${t.className(panel)} ${t.attribute(panel, "id") ?? ""}`)) continue;
      const style = t.styleOf(panel);
      if (style.position === "fixed" || (style.position === "absolute" && style.display === "none")) continue;
      if (hasText(panel) && !isOfFrame(tab)) add(listOf(tab), tab);
    }
    const found = [];
    for (const [list, members] of groups) {
      const declared = members.some((tab) => known.has(tab));
      const hidden = members.filter((tab) => { const panel = namedPanels(tab)[0]; return panel ? view.texts(panel, 1).size === 0 : true; });
      if (!declared && !hidden.length) continue;
      // What some say without ARIA may be a table of contents as well.
      const bound = declared ? MAX_TABS : MAX_UNDECLARED_TABS;
      const chosen = members.filter((tab, index) => index < bound || isActive(tab));
      found.push({ list, members: chosen, left: members.length - chosen.length });
    }
    return found;
  };
  const isActive = (tab) => t.attribute(tab, "aria-selected") === "true"
    || (t.attribute(tab, "aria-selected") === null && /(?:^|[\s_-])(?:active|selected|current)(?:[\s_-]|$)/i.test(`${t.className(tab)} ${t.className(t.parentOf(tab))}`));

  // Boxes and radio buttons that a style sheet shows sections for, with the hidden text behind each.
  const checkedSetter = Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, "checked").set;
  const labelsOf = t.getter(HTMLInputElement.prototype, "labels");
  const hidesText = (element) => /\S/.test(t.textContent(element)) && !t.matches(element, POPUP_PANELS)
    && [element, ...[...t.queryIn(element, "*")].slice(0, 300)].some((one) => (!t.isRendered(one) || t.clientHeight(one) < 2) && t.styleOf(one).display !== "inline" && /\S/.test(t.textContent(one)));
  const switches = (scopes, limit) => {
    const found = [];
    for (const input of t.all("input[type=checkbox], input[type=radio]", scopes)) {
      if (found.length >= limit) break;
      const label = labelsOf(input)?.[0] ?? input;
      if (isOff(input) || isOfFrame(label) || t.closest(input, PAGE_PARTS) || isPageHeader(input) || isOfFrame(input)) continue;
      const behind = [];
      for (let at = t.parentOf(input) && t.tag(t.parentOf(input)) === "label" ? t.parentOf(input) : input; (at = t.nextElement(at)); ) behind.push(at);
      const sections = behind.filter(hidesText);
      if (sections.length) found.push({ input, label, sections, isRadio: t.attribute(input, "type").toLowerCase() === "radio" });
    }
    return found;
  };
  const check = (input, isChecked) => checkedSetter.call(input, isChecked);

  globalThis.pageControls = {
    isForbidden, mayPress, mayShow, pressTarget, isRealLink, isOfFrame, namedPanels, blockOf, nextPanel, panelOf, hasText, isShown, expanders, toggles, tabs, isActive, isPressable, switches, check, isPageHeader, PAGE_PARTS, POPUP_PANELS,
  };
}
