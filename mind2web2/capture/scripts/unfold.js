// One step of unfolding a document; what has been done is kept as `globalThis.unfolding` between the steps.
function (step, ...given) {
  const t = globalThis.pageTools;
  const c = globalThis.pageControls;
  const state = (t.kept.unfolding ??= {
    counts: {}, pressed: new WeakSet(), copies: [], panels: [], baseline: null, presses: 0,
    morePresses: new WeakMap(), futile: new WeakSet(), labels: new Set(), tabLists: [], titled: new WeakSet(),
    leftShut: 0, tabsLeft: 0, uncopied: [], allPressed: [],
  });
  const count = (kind, number = 1) => { if (number) state.counts[kind] = (state.counts[kind] ?? 0) + number; };

  const PASSING = /^(?:loading|please wait|lädt|chargement|cargando|caricamento|carregando|laden|загрузка|読み込み中|加载中)\b.{0,40}$/iu;
  const MAX_TOGGLES = 1000;
  const MAX_COPIES = 200;
  const MAX_SWITCHES = 100;
  const MAX_HOVERED = 500;
  const MAX_LOOKED_AT = 2000;
  const MAX_CONTEXT_CHARS = 2000;
  const RECORDS = "table, [role=table], [role=grid], dl";
  const press = (control) => { state.presses++; t.press(c.pressTarget(control)); };

  const steps = {
    // Open what opens without a press, and say whether there is anything to press.
    begin: () => openDetails() + openSwitched() + openHovered(),
    // Press all closed controls of one round; the tabs too, for what they load.
    press: (limit) => {
      const opened = openDetails();
      const scopes = t.roots();
      const isRemade = remadeControls();
      const closed = [...c.expanders(scopes), ...c.toggles(scopes, MAX_TOGGLES)].filter(({ control }) => !state.pressed.has(control) && !isRemade(control));
      const fresh = closed.slice(0, limit);
      state.leftShut = closed.length - fresh.length;
      state.round = [];
      for (const { kind, control, panel, isGuess } of fresh) {
        if (state.pressed.has(control)) continue;
        state.pressed.add(control);
        state.allPressed.push({ control, label: t.labelOf(control) });
        state.round.push({ kind, control, panel: panel ?? c.namedPanels(control)[0] ?? null, isGuess });
      }
      for (const { list, members, left } of c.tabs(scopes)) {
        if (state.tabLists.some((known) => known.list === list)) continue;
        state.tabsLeft += left;
        const active = members.find(c.isActive) ?? members.find((tab) => c.namedPanels(tab).some(c.isShown)) ?? null;
        const group = { list, members, active };
        state.tabLists.push(group);
        for (const tab of members) {
          if (tab === active || state.pressed.has(tab)) continue;
          state.pressed.add(tab);
          state.round.push({ kind: "tab", control: tab, panel: c.namedPanels(tab)[0] ?? null, group });
        }
        if (active) holdCopy(active, c.namedPanels(active)[0] ?? null, "tab", list);
      }
      if (!state.round.length) return opened;
      state.baseline ??= seenBlocks();
      // What is open already may be closed by a press elsewhere.
      for (const open of t.all("[aria-expanded=true]", scopes).slice(0, 50)) {
        const panel = c.isForbidden(open) ? null : c.panelOf(open);
        if (panel && c.isShown(panel)) holdCopy(open, panel, "expandable section", null);
      }
      for (const one of state.round) {
        state.labels.add(t.labelOf(one.control));
        one.label = t.labelOf(one.control);
        one.isPressable = c.mayPress(one.control);
        if (one.isPressable) press(one.control);
      }
      return state.round.length;
    },
    // Sort out which of them stayed closed; return how many have to be pressed one at a time.
    sort: () => {
      state.alone = [];
      const isRight = state.round.some(({ isGuess, panel }) => isGuess && t.isConnected(panel) && c.isShown(panel));
      for (const one of state.round) {
        if (one.isGuess && !c.isShown(one.panel)) {
          // Sections may close each other.
          if (isRight) state.alone.push(one);
          continue;
        }
        const panel = one.panel && t.isConnected(one.panel) ? one.panel : c.namedPanels(one.control)[0] ?? null;
        const isShared = panel && one.kind === "tab" && one.group.members.some((tab) => tab !== one.control && c.namedPanels(tab).includes(panel));
        if (panel && !isShared && c.hasText(panel)) {
          state.panels.push({ ...one, panel });
          // Another press may empty it again.
          if (c.isShown(panel)) holdCopy(one.control, panel, one.kind, one.group?.list);
          continue;
        }
        const isOpen = one.kind !== "tab" && t.isConnected(one.control) && t.attribute(one.control, "aria-expanded") === "true";
        if (isOpen && (!panel || c.isShown(panel))) {
          count(one.kind);
          holdCopy(one.control, panel ?? c.nextPanel(one.control), one.kind, null);
        } else if (one.isPressable) state.alone.push({ ...one, panel });
      }
      return state.alone.length;
    },
    // Press one of them; 2 means that another tab had to be pressed first, to see what this one changes.
    pressAlone: (index) => {
      const one = state.alone[index];
      state.before = null;
      if (!t.isConnected(one.control)) one.control = twinOf(one);
      if (!one.control) return 0;
      const first = one.group?.active;
      if (first && t.isConnected(first) && c.isActive(one.control) && !one.isSecond && c.mayPress(first)) {
        one.isSecond = true;
        press(first);
        return 2;
      }
      state.before = new Set(seenBlocks());
      if (one.kind === "tab" || t.attribute(one.control, "aria-expanded") !== "true") press(one.control);
      return 1;
    },
    keepAlone: (index) => {
      const one = state.alone[index];
      if (!state.before) return;
      const after = t.look().texts();
      const old = state.before;
      const newBlocks = new Set([...t.blocksOf(after)].filter(([, text]) => !old.has(text)).map(([block]) => block));
      const fresh = new Set([...after.keys()].filter((node) => { for (let at = t.parentOf(node); at; at = t.parentOf(at)) if (newBlocks.has(at)) return true; return false; }));
      const panel = c.namedPanels(one.control)[0] ?? one.panel ?? (one.kind === "tab" ? sharedPanel(fresh, one.group.list) : null);
      if (panel && t.isConnected(panel) && c.isShown(panel)) {
        holdCopy(one.control, panel, one.kind, one.group?.list);
        count(one.kind);
      } else if (fresh.size) {
        for (const top of piecesOf(fresh, after, one)) holdCopy(one.control, top, one.kind, one.group?.list);
        count(one.kind);
      }
    },
    // Back to the tabs that were open at first.
    restore: () => {
      let restored = 0;
      for (const { active } of state.tabLists) {
        if (active && t.isConnected(active) && !c.isRealLink(active) && !c.isActive(active) && c.mayPress(active)) {
          press(active);
          restored++;
        }
      }
      return restored;
    },
    // See what "show more" brought.
    sortMore: () => {
      const old = new Set(state.beforeMore);
      const after = t.look().texts();
      let brought = 0;
      for (const text of t.blocksOf(after).values()) if (!old.has(text)) brought += text.length;
      const left = location.href.replace(/#.*/, "") !== state.addressBefore.replace(/#.*/, "") && lost(state.beforeMore, after).length > state.beforeMore.length / 2;
      if (left) history.back();
      for (const { control, name } of state.moreNow) {
        state.labels.add(name);
        state.labels.add(t.labelOf(control));
        const isUnchanged = t.isConnected(control) && t.isRendered(control);
        if (isUnchanged && brought < 3) {
          state.futile.add(control);
          if (unclip(control)) count("clipped text");
        } else if (!left) count("show more");
      }
      return { brought, left };
    },
    // Show side by side what could not be open at the same time.
    finish: () => {
      for (const { control, panel, kind, group } of state.panels) {
        if (!t.isConnected(panel)) continue;
        if (!c.isShown(panel)) {
          if (!c.mayShow(control) || !mayReveal(panel, group?.list)) continue;
          for (let at = panel, i = 0; at && i < 3 && !t.isRendered(at); at = t.parentOf(at), i++) {
            if (at !== panel && (at === group?.list || t.normal(t.textContent(at)).length > t.normal(t.textContent(panel)).length + 3)) break;
            t.reveal(at);
          }
          t.reveal(panel);
        }
        if (!c.isShown(panel)) continue;
        count(kind);
        if (kind === "tab") title(panel, control);
      }
      for (const { active } of state.tabLists) {
        const panel = active && c.namedPanels(active)[0];
        if (!panel || !state.panels.some(({ group }) => group?.active === active)) continue;
        if (!c.isShown(panel)) t.reveal(panel);
        if (c.isShown(panel)) title(panel, active);
      }
      for (const clamped of clampedText()) {
        t.force(clamped, { "-webkit-line-clamp": "none", "max-height": "none", height: "auto" });
        count("clamped text");
      }
      if (state.copies.length) putCopies();
      putLost();
      const words = state.uncopied.length ? wordsSeen() : "";
      const unkept = state.uncopied.filter((strings) => !strings.every((text) => words.includes(text))).length;
      return { counts: state.counts, left: { "closed sections": state.leftShut, tabs: state.tabsLeft, "sections that close each other": unkept } };
    },
  };

  function wordsSeen() {
    return ` ${[...t.look().texts().values()].join(" ")} `;
  }
  function seenBlocks() {
    return [...t.blocksOf(t.look().texts()).values()];
  }
  function openDetails() {
    let opened = 0;
    for (const details of t.all("details")) {
      if (t.closest(t.parentOf(details) ?? details, "nav, [role=navigation], [role=menu]") || c.isPageHeader(details)) continue;
      t.removeAttribute(details, "name");
      if (!t.hasAttribute(details, "open")) {
        t.setAttribute(details, "open", "");
        count("details");
        opened++;
      }
    }
    for (const section of t.all("[hidden=until-found]")) {
      t.removeAttribute(section, "hidden");
      count("until found");
      opened++;
    }
    return opened;
  }
  // Sections that a style sheet shows while a box is checked. No event is sent, so that no script notices.
  function openSwitched() {
    const found = c.switches(t.roots(), MAX_SWITCHES);
    for (const { input, label, sections, isRadio } of found) {
      const wasChecked = input.checked;
      const group = isRadio ? found.filter((one) => one.input.name === input.name && one.input.checked) : [];
      const before = textsOf(sections);
      c.check(input, isRadio || !wasChecked);
      t.endAnimations();
      const after = textsOf(sections);
      const fresh = new Set([...after.keys()].filter((node) => !before.has(node)));
      const isLossless = [...before.keys()].every((node) => after.has(node));
      const isOnPage = t.isRendered(input) && t.clientHeight(input) > 3 && t.box(input).left >= 0;
      if (fresh.size && !isRadio && isLossless && !isOnPage) {
        count("collapsed section");
        continue;
      }
      for (const section of sections) {
        if ([...fresh].some((node) => t.holds(section, node))) holdCopy(label, section, isRadio ? "tab" : "collapsed section", null);
      }
      c.check(input, wasChecked);
      for (const one of group) c.check(one.input, true);
      t.endAnimations();
    }
    return 0;
  }
  // Text that a style sheet shows under the pointer: overlays, and the backs of cards that turn.
  function openHovered() {
    const view = t.look();
    const hidden = new Set();
    const turned = new Set();
    let left = MAX_LOOKED_AT;
    for (const { selector, turns } of hoverRules()) {
      const hovered = plainSelector(selector.slice(0, selector.lastIndexOf(":hover")));
      for (const target of safely(() => t.all(plainSelector(selector))).slice(0, MAX_SWITCHES)) {
        if (left-- <= 0) break;
        const isHidden = c.hasText(target) && !view.texts(target, 1).size;
        const sides = turns ? [target, ...[...t.queryIn(target, "*")].slice(0, MAX_SWITCHES)].filter((side) => t.styleOf(side).backfaceVisibility === "hidden") : [];
        if ((!isHidden && !sides.length) || hidden.size + turned.size >= MAX_HOVERED) continue;
        const around = safely(() => [t.closest(target, hovered)])[0];
        if (!around || c.isForbidden(around) || t.matches(target, c.POPUP_PANELS) || isMenu(target)) continue;
        if (isHidden) hidden.add(target);
        const isTurned = sides.some((side) => t.styleOf(side).transform !== "none" || t.styleOf(side).rotate !== "none");
        for (const side of isTurned ? sides : []) turned.add(side);
      }
    }
    hidden.forEach(t.reveal);
    // One side below the other.
    turned.forEach((side) => t.force(side, { "backface-visibility": "visible", transform: "none", rotate: "none", position: "static" }));
    count("shown on hover", hidden.size + turned.size);
    return 0;
  }
  function hoverRules() {
    const found = new Map();
    const waiting = [...document.styleSheets].flatMap((sheet) => safely(() => [...sheet.cssRules]));
    for (const rule of waiting) {
      if (rule.cssRules?.length && !rule.selectorText) waiting.push(...rule.cssRules);
      const { display, visibility, opacity, transform, rotate, height, maxHeight } = rule.style ?? {};
      if (![display, visibility, opacity, transform, rotate, height, maxHeight].some(Boolean)) continue;
      const turns = Boolean(transform || rotate);
      for (const selector of (rule.selectorText ?? "").split(",")) if (selector.includes(":hover")) found.set(selector, { selector, turns });
    }
    return [...found.values()].slice(0, MAX_SWITCHES);
  }
  function plainSelector(selector) {
    return selector.replaceAll(/:hover|:focus(?:-within|-visible)?/g, "").trim().replace(/^(?=$|[>+~])/, "*");
  }
  function isMenu(element) {
    const linked = [...t.queryIn(element, "a")].map(t.textContent).join("");
    return t.normal(linked).length > t.normal(t.textContent(element)).length / 2;
  }
  function safely(get) {
    try { return get(); } catch { return []; }
  }
  function textsOf(elements) {
    const view = t.look();
    return new Map(elements.flatMap((element) => [...view.texts(element)]));
  }
  // Which controls stand for one that was pressed and that the page has made anew, closed, since.
  function remadeControls() {
    const gone = new Map();
    for (const { control, label } of state.allPressed) if (!t.isConnected(control)) gone.set(label, (gone.get(label) ?? 0) + 1);
    return (control) => {
      const label = t.labelOf(control);
      const left = gone.get(label) ?? 0;
      gone.set(label, left - 1);
      return left > 0;
    };
  }
  // Some pages make their controls anew at every press.
  function twinOf({ kind, label }) {
    const scopes = t.roots();
    const controls = kind === "tab" ? c.tabs(scopes).flatMap(({ members }) => members) : [...c.expanders(scopes), ...c.toggles(scopes, 100)].map(({ control }) => control);
    const twin = controls.find((control) => t.labelOf(control) === label && c.mayPress(control)) ?? null;
    if (twin) state.pressed.add(twin);
    return twin;
  }
  function holdCopy(control, panel, kind, list) {
    if (!panel) return;
    const strings = [...t.blocksOf(t.look().texts(panel)).values()];
    const isSame = (other) => other.control === control || (!t.isConnected(other.control) && other.label === t.labelOf(control).slice(0, 200));
    if (!strings.length || state.copies.some((other) => isSame(other) && other.strings.join() === strings.join())) return;
    if (state.copies.length >= MAX_COPIES) {
      state.uncopied.push(strings);
      return;
    }
    const copy = t.copyOf(panel);
    if (copy) state.copies.push({ control, panel, kind, list, copy, strings, label: t.labelOf(control).slice(0, 200) });
  }
  // The panel that tabs fill in turn without naming it: the one that has all that is new.
  function sharedPanel(fresh, list) {
    const panels = t.all("[role=tabpanel]").filter((panel) => c.isShown(panel) && !t.holds(panel, list));
    if (!fresh.size) return panels.length === 1 ? panels[0] : null;
    const holding = panels.filter((panel) => [...fresh].every((node) => t.holds(panel, node)));
    return holding.at(-1) ?? null;
  }
  // What is new, in pieces that make sense by themselves: a price says nothing without the row or the card it is in.
  function piecesOf(fresh, after, { control, group }) {
    const tops = wholes(fresh, after);
    const isApart = (element) => !t.holds(element, control) && !(group && t.holds(element, group.list));
    if (tops.length > 1) {
      let around = t.parentOf(tops[0]);
      while (around && !tops.every((top) => t.holds(around, top))) around = t.parentOf(around);
      if (around && isApart(around) && t.normal(t.textContent(around)).length <= MAX_CONTEXT_CHARS) return [t.closest(around, RECORDS) ?? around].filter(isApart);
    }
    const lifted = tops.map((top) => { const whole = t.closest(top, RECORDS); return whole && isApart(whole) ? whole : top; });
    return [...new Set(lifted)];
  }
  // The largest elements of which everything that can be seen is new.
  function wholes(fresh, after) {
    const freshIn = new Map();
    const allIn = new Map();
    for (const [node] of after) {
      for (let at = t.parentOf(node); at; at = t.parentOf(at)) {
        allIn.set(at, (allIn.get(at) ?? 0) + 1);
        if (fresh.has(node)) freshIn.set(at, (freshIn.get(at) ?? 0) + 1);
      }
    }
    const isWhole = (element) => element && freshIn.get(element) === allIn.get(element);
    const tops = new Set();
    for (const node of fresh) {
      let at = t.parentOf(node);
      if (!isWhole(at)) { tops.add(at); continue; }
      while (isWhole(t.parentOf(at))) at = t.parentOf(at);
      tops.add(at);
    }
    return [...tops].filter((top) => ![...tops].some((other) => other !== top && t.holds(other, top))).slice(0, 30);
  }
  // A panel may be shown for its control; not what is hidden around it for reasons of its own.
  function mayReveal(panel, list) {
    if (t.matches(panel, "dialog, [role=dialog], [role=menu], [role=listbox], [role=tooltip], [popover], nav")) return false;
    const around = t.parentOf(panel);
    return !around || t.isRendered(around) || (t.parentOf(around) !== null && t.normal(t.textContent(around)).length <= t.normal(t.textContent(panel)).length + 3 && around !== list);
  }
  // Each panel says which tab it belongs to, as the tabs themselves no longer do.
  function title(panel, control) {
    const label = t.labelOf(control).slice(0, 200);
    state.titled.add(panel);
    const first = t.normal(t.textContent(panel)).slice(0, label.length);
    if (!label || first.toLowerCase() === label.toLowerCase()) return;
    const heading = headingOf(label);
    t.method(Node.prototype, "insertBefore")(panel, heading, t.getter(Node.prototype, "firstChild")(panel));
    if (!t.look().texts(heading).size) t.reveal(heading);
  }
  function headingOf(label) {
    const heading = document.createElement("h4");
    t.appendChild(heading, document.createTextNode(label));
    return heading;
  }
  function unclip(control) {
    for (const near of [t.previousElement(control), t.parentOf(control), t.previousElement(c.blockOf(control))]) {
      if (!near || near === t.body() || !/hidden|clip/.test(t.styleOf(near).overflowY) || t.scrollHeight(near) < t.clientHeight(near) + 8) continue;
      t.force(near, { height: "auto", "max-height": "none", overflow: "visible", "-webkit-line-clamp": "none" });
      return true;
    }
    return false;
  }
  function clampedText() {
    return t.all("body *").filter((element) => {
      const height = t.clientHeight(element);
      return height > 0 && t.scrollHeight(element) > height + 2 && t.styleOf(element).webkitLineClamp !== "none" && t.isRendered(element);
    });
  }
  function lost(before, after) {
    const now = ` ${[...after.values()].join(" ")} `;
    return before.filter((text) => text.length > 1 && !PASSING.test(text) && !now.includes(text) && ![...state.labels].some((label) => label.includes(text)));
  }
  function putCopies() {
    const words = wordsSeen();
    const places = new Map();
    for (const { control, panel, list, copy, strings, label, kind } of state.copies) {
      if (strings.every((text) => words.includes(text))) continue;
      const block = t.isConnected(panel) && kind !== "tab" ? panel : t.isConnected(control) ? (list && t.isConnected(list) ? list : c.blockOf(control)) : null;
      t.method(Element.prototype, "prepend")(copy, headingOf(label));
      put(copy, places.get(block) ?? block);
      if (block) places.set(block, copy);
      count("kept open");
    }
    for (const { list, members, active } of state.tabLists) {
      // What follows the copies of other tabs is the open one's again.
      const last = places.get(list);
      const open = members.find((tab) => t.isConnected(tab) && c.isActive(tab)) ?? active;
      if (!last || !open) continue;
      const panel = c.namedPanels(open).find(c.isShown);
      if (!panel) put(headingOf(t.labelOf(open).slice(0, 200)), last);
      else if (!state.titled.has(panel)) title(panel, open);
    }
  }
  function putLost() {
    if (!state.presses) return;
    const missing = lost(state.baseline, t.look().texts()).slice(0, 300);
    if (!missing.length) return;
    const box = document.createElement("div");
    for (const text of missing) {
      const line = document.createElement("p");
      t.appendChild(line, document.createTextNode(text));
      t.appendChild(box, line);
    }
    put(box, null);
    count("kept text");
  }
  function put(copy, behind) {
    if (behind && t.isConnected(behind)) t.method(Element.prototype, "after")(behind, copy);
    else t.appendChild(t.body(), copy);
    const letters = (text) => text.replace(/\s+/gu, "").length;
    const isPainted = () => letters(t.seenText(copy)) >= letters(t.textContent(copy));
    if (isPainted()) return;
    t.reveal(copy);
    for (const inner of t.queryIn(copy, "*")) if (!t.look().texts(inner, 1).size) t.reveal(inner);
    if (!t.look().texts(copy, 1).size) t.appendChild(t.body(), copy);
  }

  return steps[step](...given) ?? null;
}
