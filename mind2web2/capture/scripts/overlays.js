// One step of clearing a document of what lies over it; see `overlays.py`.
function (step, isFrame, ...given) {
  const t = globalThis.pageTools;
  const consent = globalThis.pageConsent;
  const state = (t.kept.clearing ??= { tried: new WeakSet(), banners: [], done: [], walls: [], pending: [], wall: null, consentText: "", consentStrings: new Set() });
  const CLOSE = /^(?:[×✕✖xX╳⨯]|close(?: (?:this|dialog|modal|window|popup|banner|ad|message))*|dismiss|no,? thanks?|no thank you|not now|maybe later|later|skip|remind me later|continue to (?:site|website|article)|schließen|nein,? danke|später|fermer|non merci|plus tard|cerrar|no,? gracias|ahora no|chiudi|no grazie|fechar|não,? obrigado|agora não|sluiten|nee bedankt|stäng|luk|lukk|sulje|zamknij|nie,? dziękuję|zavřít|закрыть|нет,? спасибо|kapat|閉じる|关闭|關閉|닫기|إغلاق)$/iu;
  const CLOSE_NAME = /(?:^|[\s_-])(?:close|dismiss|btn-close|modal-close|popup-close|closebutton|mfp-close|fancybox-close)(?:[\s_-]|$)|close-?(?:btn|button|icon|modal|popup)/i;
  const WALLS = [
    ["adblock wall", /ad.?block(?:er|ing)?|werbeblocker|bloqueur de pub|bloqueador de anuncios/iu],
    ["paywall", /subscribe (?:now )?to (?:continue|read|keep|unlock)|subscription (?:is )?required|(?:become|for) (?:a )?(?:subscribers?|members?)(?: only)?|free articles?|already a subscriber|to continue reading|jetzt weiterlesen|abonn(?:ez|é)|suscr[ií]bete para/iu],
    ["login wall", /(?:sign|log) ?in (?:to|or register to|or sign up to) (?:continue|view|see|read|access)|create (?:a|your) (?:free )?account to|you must (?:be logged|log|sign) in|please (?:log|sign) in|join to (?:view|see)|melden sie sich an|connectez-vous/iu],
  ];

  const MAX_BARE_CHARS = 300;
  const MAX_WALL_CHARS = 2500;
  const MAX_WALL_LIST_CHARS = 30000;
  const BEFORE = /before you continue|bevor sie|avant de|antes de continuar|prima di continuare|voordat je/iu;

  const wordsOf = (element) => t.seenText(element);
  // Whether so many characters are to be seen on the page; reads no more of it.
  const hasMoreThan = (chars) => t.textLength(t.look().texts(t.root, chars + 1)) > chars;
  const holdsMost = (element) => {
    const { length } = wordsOf(element);
    return (length > 1500 && !hasMoreThan(2 * length)) || (length > 0 && t.queryIn(element, "main, article").length > 0 && !hasMoreThan(2.5 * length));
  };
  const areaShare = (element) => {
    const area = t.box(element);
    const width = Math.max(0, Math.min(area.right, innerWidth) - Math.max(area.left, 0));
    const height = Math.max(0, Math.min(area.bottom, innerHeight) - Math.max(area.top, 0));
    return (width * height) / (innerWidth * innerHeight);
  };
  const isModal = (element) => t.attribute(element, "aria-modal") === "true" || (t.tag(element) === "dialog" && t.hasAttribute(element, "open"));
  // The outermost elements that are laid over the page rather than into it.
  const overlays = () => {
    const found = [];
    const top = t.body();
    for (const element of t.all("*")) {
      const style = t.styleOf(element);
      const { position } = style;
      if ((position === "static" && !isModal(element)) || !t.isHtml(element) || element === t.root || element === top) continue;
      const isLaidOver = position === "fixed" || (position === "sticky" && /cookie|consent|gdpr/i.test(`${t.className(element)} ${t.attribute(element, "id") ?? ""}`)) || isModal(element)
        || (position === "absolute" && Number(style.zIndex) >= 1000 && areaShare(element) > 0.3)
        || (/^(?:alertdialog|dialog)$/.test(t.attribute(element, "role") ?? "") && position !== "static");
      if (!isLaidOver || !t.isRendered(element)) continue;
      if (found.some((outer) => t.holds(outer, element) && (wordsOf(outer).length > 0) === (wordsOf(element).length > 0) && !holdsMost(outer))) continue;
      found.push(element);
      if (found.length >= 60) break;
    }
    return found;
  };
  const remember = (element) => {
    const view = t.look().texts(element);
    for (const text of view.values()) state.consentStrings.add(text);
    if (!state.consentText) state.consentText = [...view.values()].join(" ").slice(0, 200);
  };
  const vendorBanners = () => {
    const found = [];
    const scopes = t.roots();
    for (const [name, where, refuse, agree] of consent.VENDORS) {
      for (const banner of t.all(where, scopes)) {
        const shown = [banner, ...t.queryIn(t.shadowOf(banner) ?? banner, "*")].some((one) => t.isRendered(one) && t.box(one).height > 0);
        if (!shown) continue;
        const text = wordsOf(banner);
        if (text && !consent.isConsentText(text)) continue;
        found.push({ name, banner, choice: pick(banner, refuse, "rejected") ?? pick(banner, agree, "accepted") ?? consent.choiceIn(banner) });
      }
    }
    return found;
  };
  const pick = (banner, selector, how) => {
    const button = consent.buttonsIn(banner).find((one) => t.matches(one, selector) && !consent.isLeaving(one));
    return button ? [how, button] : null;
  };
  const genericBanners = (known) => {
    const found = [];
    const frameName = isFrame && /consent|cookie|privacy|cmp|gdpr|trustarc|truste|sp_message|message\/index/i.test(`${location.href} ${document.title}`);
    const candidates = frameName && wordsOf(t.body()).length < 6000 ? [t.body()] : overlays();
    for (const banner of candidates) {
      if (known.some(({ banner: other }) => t.holds(other, banner) || t.holds(banner, other))) continue;
      const text = wordsOf(banner);
      if (text.length < 15 || text.length > 6000 || !consent.isConsentText(text) || consent.asksForInput(banner)) continue;
      if (banner !== t.body() && holdsMost(banner) && text.length > 3000) continue;
      const choice = consent.choiceIn(banner);
      // A dialog that mentions cookies on its way to something else is no banner.
      if (!choice && !/cookie|consent|gdpr/i.test(`${t.className(banner)} ${t.attribute(banner, "id") ?? ""}`)) continue;
      found.push({ name: "generic", banner, choice });
    }
    return found;
  };

  const steps = {
    // Press the buttons of the consent banners there are; return how many banners there are.
    press: () => {
      const vendors = vendorBanners();
      state.banners = [...vendors, ...genericBanners(vendors)].filter(({ banner }) => !state.tried.has(banner));
      for (const { banner, choice } of state.banners) {
        state.tried.add(banner);
        remember(banner);
        if (choice) t.press(choice[1]);
      }
      return state.banners.length;
    },
    // Remove the banners that did not go.
    sort: () => {
      const said = [];
      for (const { name, banner, choice } of state.banners) {
        const isThere = t.isConnected(banner) && [banner, ...t.queryIn(t.shadowOf(banner) ?? banner, "*")].some((one) => t.isRendered(one) && t.box(one).height > 0);
        if (!isThere) {
          said.push(`consent banner (${name}): ${choice ? choice[0] : "closed by itself"}`);
        } else if (isAllThereIs(banner)) {
          state.wall = banner;
          said.push(`consent banner (${name}): left, as the page shows nothing else`);
        } else if (banner !== t.body() && !holdsMostBeside(banner)) {
          hide(banner);
          said.push(`consent banner (${name}): removed`);
        } else if (choice) {
          said.push(`consent banner (${name}): ${choice[0]}, still there`);
        }
      }
      if (said.length) { unlock(); sharpen(true); }
      return said;
    },
    // Answer where a page is nothing but the request for consent; the form that this sends may lead on.
    pass: () => {
      if (!consentWall()) return false;
      const button = consent.namedChoiceIn(state.wall && t.isConnected(state.wall) ? state.wall : t.body());
      if (button) t.method(HTMLElement.prototype, "click")(button);
      return button !== null;
    },
    finish: () => {
      if (!isFrame) {
        hideEmptyFrames();
        for (const overlay of overlays()) if (!isAllThereIs(overlay)) clear(overlay);
        unlock();
        sharpen(state.done.length + state.walls.length > 0);
      }
      return { done: state.done, walls: state.walls, consentWall: isFrame ? null : consentWall() };
    },
  };

  // A banner is short; what is long beside its consent text is content, whatever it is called.
  function holdsMostBeside(banner) {
    const text = wordsOf(banner);
    return holdsMost(banner) && text.length > 3000;
  }
  function isAllThereIs(banner) {
    const beside = (element) => !t.holds(banner, element) && t.isRendered(element);
    if (t.all("img, video, canvas, table, iframe").some(beside)) return false;
    return !hasMoreThan(wordsOf(banner).length + 119);
  }
  function hide(element) {
    if (t.tag(element) === "dialog" && t.hasAttribute(element, "open")) element.close();
    t.force(element, { display: "none" });
  }
  // Frames of consent messages whose document is another's, and covers without a word.
  function hideEmptyFrames() {
    for (const frame of t.all("iframe[id^=sp_message_iframe], iframe.truste_popframe, iframe[src*='consent'], iframe[title*='consent' i], iframe[src*='cmp.']")) {
      let top = null;
      for (let at = frame; at && at !== t.body(); at = t.parentOf(at)) if (t.styleOf(at).position === "fixed") top = at;
      if (!top || !t.isRendered(top) || wordsOf(top).length > 200) continue;
      hide(top);
      state.done.push("consent frame: removed");
    }
  }
  function clear(overlay) {
    if (!t.isConnected(overlay) || !t.isRendered(overlay) || state.walls.length > 5) return;
    const share = areaShare(overlay);
    const text = wordsOf(overlay);
    if (share <= 0.3 && !isModal(overlay)) return;
    if (overlay === t.body() || t.holds(overlay, t.body())) return;
    if (isAppShell(overlay, text)) return;
    for (const [name, pattern] of WALLS) {
      if (text.length < 2500 && pattern.test(text) && !/newsletter/i.test(text)) {
        state.walls.push(`${name}: ${text.slice(0, 120)}`);
        return;
      }
    }
    if (!text && !t.queryIn(overlay, "iframe, img, video, canvas, svg").length) {
      t.force(overlay, { display: "none" });
      state.done.push("backdrop: removed");
      return;
    }
    const says = text.slice(0, 80);
    const copy = t.copyOf(overlay);
    const button = closeButton(overlay);
    if (button) t.press(button);
    const isGone = !t.isConnected(overlay) || !t.isRendered(overlay);
    if (isGone) {
      if (copy && text) t.appendChild(t.body(), copy);
      state.done.push(`overlay closed: ${says}`);
    } else {
      lay(overlay);
      state.done.push(`overlay moved aside: ${says}`);
    }
  }
  // Pages are built within fixed boxes as well; such a box is the page.
  function isAppShell(overlay, text) {
    if (isModal(overlay)) return text !== "" && !hasMoreThan(199) && !hasMoreThan(text.length / 0.9);
    return (text !== "" && !hasMoreThan(2 * text.length)) || t.queryIn(overlay, "main, [role=main]").length > 0;
  }
  function closeButton(overlay) {
    const buttons = consent.buttonsIn(overlay).filter((one) => !consent.isLeaving(one));
    return buttons.find((one) => CLOSE.test(consent.nameOf(one)) || CLOSE.test(t.normal(t.attribute(one, "aria-label") ?? "")) || CLOSE.test(t.normal(t.attribute(one, "title") ?? "")))
      ?? buttons.find((one) => !consent.nameOf(one) && CLOSE_NAME.test(`${t.className(one)} ${t.attribute(one, "id") ?? ""}`))
      ?? [...t.queryIn(overlay, "[class*=close i], [aria-label*=close i]")].find((one) => t.isRendered(one) && t.textContent(one).trim().length < 3 && !consent.isLeaving(one));
  }
  // Into the page's flow, behind its content: nothing is covered and nothing is lost.
  function lay(overlay) {
    if (t.tag(overlay) === "dialog" && t.hasAttribute(overlay, "open")) {
      overlay.close();
      t.setAttribute(overlay, "open", "");
    }
    const copy = t.queryIn(overlay, "iframe").length ? null : t.copyOf(overlay);
    if (copy) {
      t.appendChild(t.body(), copy);
      flatten(t.getter(Element.prototype, "firstElementChild")(copy) ?? copy);
      if (t.look().texts(copy).size) {
        t.force(overlay, { display: "none" });
        return;
      }
      t.method(Element.prototype, "remove")(copy);
    }
    flatten(overlay);
  }
  function flatten(element) {
    const inFlow = { position: "static", inset: "auto", transform: "none", height: "auto", "max-height": "none", overflow: "visible", margin: "0" };
    t.force(element, { ...inFlow, width: "auto" });
    for (const inner of t.queryIn(element, "*")) if (t.styleOf(inner).position === "fixed") t.force(inner, inFlow);
  }
  // Scrolling comes back to a page that a banner had taken it from.
  function unlock() {
    const scroller = document.scrollingElement ?? t.root;
    for (const element of [t.root, t.body()]) {
      const style = t.styleOf(element);
      if (style.position === "fixed") t.force(element, { position: "static", top: "auto", width: "auto" });
      if (/hidden|clip/.test(style.overflowY) && (t.scrollHeight(scroller) > innerHeight + 4 || t.scrollHeight(t.body()) > innerHeight + 4)) t.force(element, { overflow: "visible", height: "auto" });
    }
  }
  // Sight as well. What is blurred without anything over the page is for subscribers, unless it is all there is.
  function sharpen(wasCovered) {
    for (const element of t.queryIn(document, "body, body > *, body > * > *, main, article")) {
      if (/blur\(/.test(t.styleOf(element).filter) && (wasCovered || holdsMost(element))) t.force(element, { filter: "none" });
    }
  }
  function consentWall() {
    if (state.consentText) {
      // What a banner leaves behind once it is answered is the page, however short.
      const bound = state.wall ? 120 : 20;
      const rest = [...t.look().texts().values()].filter((text) => !state.consentStrings.has(text)).join(" ");
      return rest.length < bound && !t.queryIn(document, "img, video, canvas, table").length ? state.consentText : null;
    }
    // A whole page that asks for consent, before it leads to what was asked for, names it in its titles.
    const titles = [document.title, ...[...t.queryIn(document, "h1, h2")].map((one) => t.textContent(one))].join(" ");
    if (!BEFORE.test(titles) && !consent.SUBJECT.test(titles)) return bareRequest();
    const blocks = [...t.blocksOf(t.look().texts(t.root, MAX_WALL_LIST_CHARS + 1)).values()];
    const text = blocks.join(" ");
    if (text.length > MAX_WALL_LIST_CHARS || !consent.isConsentText(text)) return null;
    const mentions = text.match(new RegExp(consent.SUBJECT.source, "giu"))?.length ?? 0;
    if (text.length > MAX_WALL_CHARS && !isConsentList(blocks, titles)) return null;
    if (mentions < 2 || consent.buttonsIn(t.body()).length > 25) return null;
    if (BEFORE.test(titles)) return consent.choiceIn(t.body()) ? text.slice(0, 200) : null;
    // A site's policy has such words too, but neither a question nor its answer.
    const asks = consent.SUBJECT.test(titles) && !consent.asksForInput(t.body());
    return asks && consent.namedChoiceIn(t.body()) ? text.slice(0, 200) : null;
  }
  // A page of one sentence or two that ask, and a button that answers, needs no title to be known.
  function bareRequest() {
    const blocks = [...t.blocksOf(t.look().texts(t.root, MAX_BARE_CHARS + 1)).values()];
    const sentences = blocks.filter((block) => block.length > 20);
    const text = blocks.join(" ");
    const isAsking = sentences.length > 0 && sentences.every((block) => consent.isConsentText(block));
    return isAsking && text.length <= MAX_BARE_CHARS && !t.queryIn(document, "img, video, canvas, table").length && consent.choiceIn(t.body()) ? text.slice(0, 200) : null;
  }
  // A wall may list its partners and their purposes, and says little else.
  function isConsentList(blocks, titles) {
    const listed = blocks.filter((block) => /partner|vendor|purpose|anbieter|zweck|fournisseur|finalit|proveedor|finalidad/iu.test(block));
    return !/polic(?:y|ies)|terms|erklärung|richtlinie|politique|política/iu.test(titles) && listed.length > 0.6 * blocks.length;
  }

  return steps[step](...given) ?? null;
}
