// How consent banners are known and answered, kept as `globalThis.pageConsent`.
function () {
  const t = globalThis.pageTools;
  // Name, the banner, what refuses, what agrees.
  const VENDORS = [
    ["OneTrust", "#onetrust-consent-sdk, #onetrust-banner-sdk", "#onetrust-reject-all-handler, .ot-pc-refuse-all-handler", "#onetrust-accept-btn-handler, #accept-recommended-btn-handler"],
    ["Cookiebot", "#CybotCookiebotDialog", "#CybotCookiebotDialogBodyButtonDecline, #CybotCookiebotDialogBodyLevelButtonLevelOptinDeclineAll", "#CybotCookiebotDialogBodyLevelButtonLevelOptinAllowAll, #CybotCookiebotDialogBodyButtonAccept"],
    ["Quantcast", "#qc-cmp2-container, .qc-cmp2-container, #qc-cmp2-ui", ".qc-cmp2-summary-buttons button[mode=secondary]:first-child", ".qc-cmp2-summary-buttons button[mode=primary]"],
    ["Didomi", "#didomi-host, #didomi-popup, #didomi-notice", "#didomi-notice-disagree-button, .didomi-continue-without-agreeing", "#didomi-notice-agree-button"],
    ["Usercentrics", "#usercentrics-root, #usercentrics-cmp-ui, #uc-banner-modal", "[data-testid=uc-deny-all-button], #deny, .uc-deny-button, #uc-btn-deny-banner", "[data-testid=uc-accept-all-button], #accept, .uc-accept-button, #uc-btn-accept-banner"],
    ["TrustArc", "#truste-consent-track, #trustarc-banner-overlay, .truste_box_overlay, #consent_blackbar, .truste_overlay", "#truste-consent-required, .required, .rejectAll", "#truste-consent-button, .acceptAll, .call"],
    ["Sourcepoint", "[id^=sp_message_container], .sp_choice_type_wrapper, .message-container", "button.sp_choice_type_13, button[title*=Reject i], button.sp_choice_type_REJECT_ALL", "button.sp_choice_type_11, button[title*=Accept i], button.sp_choice_type_ACCEPT_ALL"],
    ["Osano", ".osano-cm-window, .osano-cm-dialog", ".osano-cm-denyAll, .osano-cm-deny", ".osano-cm-accept-all, .osano-cm-accept"],
    ["Complianz", "#cmplz-cookiebanner-container, .cmplz-cookiebanner", ".cmplz-deny", ".cmplz-accept"],
    ["CookieYes", ".cky-consent-container, .cky-overlay, #cookie-law-info-bar", ".cky-btn-reject, #cookie_action_close_header_reject", ".cky-btn-accept, #cookie_action_close_header"],
    ["Termly", "#termly-code-snippet-support, [class*=termly-styles-root], .t-consentPrompt", "[data-tid=banner-decline], .t-declineButton", "[data-tid=banner-accept], .t-acceptAllButton"],
    ["Klaro", ".klaro .cookie-notice, .klaro .cookie-modal", ".cn-decline, .cm-btn-decline, .cm-btn-danger", ".cm-btn-success, .cm-btn-accept-all"],
    ["Funding Choices", ".fc-consent-root", ".fc-cta-do-not-consent", ".fc-cta-consent"],
    ["Borlabs", "#BorlabsCookieBox, .brlbs-cmpnt-container", "[data-cookie-refuse], .brlbs-btn-accept-only-essential", "[data-cookie-accept-all], .brlbs-btn-accept-all"],
    ["Iubenda", "#iubenda-cs-banner", ".iubenda-cs-reject-btn", ".iubenda-cs-accept-btn"],
    ["Axeptio", "#axeptio_overlay", "#axeptio_btn_dismiss", "#axeptio_btn_acceptAll"],
    ["Cookie Consent", ".cc-window.cc-banner, .cc-window.cc-floating, #cc-main, #cm", ".cc-deny, [data-role=necessary], #s-rall-bn, #c-s-bn", ".cc-allow, .cc-dismiss, [data-role=all], #c-p-bn"],
    ["consentmanager", "#cmpbox, #cmpbox2, #cmpwrapper", ".cmpboxbtnno", ".cmpboxbtnyes"],
    ["Tarteaucitron", "#tarteaucitronRoot", "#tarteaucitronAllDenied2, .tarteaucitronDeny", "#tarteaucitronPersonalize2, .tarteaucitronAllow"],
    ["Moove", "#moove_gdpr_cookie_info_bar", ".moove-gdpr-infobar-reject-btn", ".moove-gdpr-infobar-allow-all"],
    ["CookieHub", ".ch2-container", ".ch2-deny-all-btn", ".ch2-allow-all-btn"],
    ["Ketch", "#lanyard_root", "[aria-label*=Reject i]", "[aria-label*=Accept i]"],
    ["Transcend", "#transcend-consent-manager", "[data-testid*=reject i]", "[data-testid*=accept i]"],
  ];
  const SUBJECT = /cookie|gdpr|dsgvo|ccpa|\bconsent\b|einwilligung|datenschutz|donn[ée]es personnelles|traceurs|vie priv[ée]e|privacidad|privacy|privacidade|riservatezza|tracking technolog|samtycke|samtykke|ev[äa]ste|zgod[aęy]|soubor[yů] cookie|файл[ыаов]* cookie|куки|çerez|クッキー|プライバシー|隐私|쿠키|ملفات تعريف الارتباط/iu;
  const CONSENT = /(?:\b(?:we|sites?|websites?|page|partners?|services?|platform|app)\b.{0,80}\b(?:use|uses|using|store|stores|collect|process|set)\b|by (?:using|continuing|clicking|browsing)|accept|agree|consent|\ballow|reject|declin|preferences|third.part|personal data|personali[sz]|analytics|verwend|nutz|setzen|zustimm|akzeptier|ablehn|einwillig|utilis|refus|param[eè]tr|utiliz|acept|rechaz|configur|rifiut|gestis|gebruik|accept|weiger|använd|godk|bruger|tillad|afvis|käyt|hyväk|używa|akcept|odrzu|používá|souhlas|использу|соглас|принять|kullan|kabul|同意|使用|사용|동의|نستخدم)/iu;
  const REJECT = new RegExp("^(?:(?:no,? ?(?:thanks?)?,? )?(?:reject|refuse|decline|deny|disagree|disallow|do not (?:consent|accept|agree|allow)|don't (?:consent|accept|allow))(?: .{0,30})?"
    + "|(?:i )?do not (?:accept|agree|consent).*|(?:accept |allow |use |only |keep )*(?:only )?(?:strictly )?(?:necessary|essential|required|functional)(?: (?:cookies?|only|ones))*(?: only)?|continue without (?:accepting|agreeing|consent(?:ing)?)(?: ?→)?|opt.?out.*"
    + "|(?:alle[s]? )?(?:ablehnen|verweigern)|(?:alle )?cookies ablehnen|(?:alles?|alle cookies) ablehnen|nur (?:die )?(?:notwendige|erforderliche|essenzielle|technisch notwendige)\\S*(?: cookies)?(?: .{0,20})?|nicht (?:zustimmen|akzeptieren)|ohne (?:einwilligung|zustimmung).*"
    + "|(?:tout |je )?(?:refuse[rz]?|rejeter)(?: .{0,20})?|continuer sans accepter.*|non merci|(?:rechazar|denegar)(?: .{0,20})?|s[oó]lo (?:las )?(?:necesarias|esenciales).*|(?:rifiuta|nega)(?: .{0,20})?|solo (?:i )?(?:necessari|cookie tecnici).*|continua senza accettare|(?:rejeitar|recusar)(?: .{0,20})?"
    + "|(?:alles |alle )?(?:weigeren|afwijzen)|(?:alleen|enkel) (?:noodzakelijke|functionele).*|(?:neka|avvisa)(?: .{0,15})?|endast nödvändiga.*|(?:afvis|avvis)(?: .{0,15})?|kun nødvendige.*|(?:hylkää|kiellä)(?: .{0,15})?|vain välttämättömät.*"
    + "|odrzuć(?: .{0,20})?|tylko niezbędne.*|(?:odmítnout|zamítnout)(?: .{0,15})?|jen nezbytné.*|отклонить(?: .{0,20})?|только необходимые.*|reddet|tümünü reddet|(?:すべて)?拒否(?:する)?|同意しない|拒绝.{0,6}|全部拒绝|仅必要.{0,6}|(?:모두 )?거부|رفض.{0,12})$", "iu");
  const ACCEPT = new RegExp("^(?:(?:yes,? )?(?:i )?(?:accept|agree|allow|consent|got it|ok(?:ay)?|understand|understood|continue|dismiss|close|confirm|save)(?: (?:and|&) (?:close|continue|proceed))?(?: (?:all|cookies|all cookies|the use.{0,20}|selection|choices|my choices|preferences|to all|everything))*[.!]?"
    + "|i understand|that'?s (?:ok|fine)|(?:alle[ns]? |allen )?(?:cookies )?(?:akzeptieren|zustimmen|annehmen|erlauben|zulassen)(?: .{0,20})?|(?:ich )?(?:stimme zu|verstanden|einverstanden)|auswahl (?:speichern|bestätigen)|(?:tout |j'|je )?accepte[rz]?(?: .{0,20})?|d'accord|j'ai compris|(?:aceptar|acepto|entendido|permitir)(?: .{0,20})?|(?:accetta|accetto|consenti|ho capito)(?: .{0,20})?|(?:aceitar|aceito|concordo|entendi)(?: .{0,20})?"
    + "|(?:alles |alle )?(?:cookies )?(?:accepteren|toestaan|akkoord)|(?:acceptera|godkänn|tillåt)(?: .{0,15})?|(?:accepter|tillad|godta|godkend)(?: .{0,15})?|(?:hyväksy|salli)(?: .{0,15})?|(?:akceptuj[ęe]?|zgadzam się|zaakceptuj)(?: .{0,20})?|(?:přijmout|souhlasím|povolit)(?: .{0,15})?|(?:принять|согласен|хорошо|понятно)(?: .{0,15})?|(?:tümünü )?kabul et|(?:すべて)?(?:同意|許可|承諾|受け入れ)(?:する|る)?|(?:全部|全て)?(?:接受|同意|允许).{0,6}|(?:모두 )?(?:동의|수락|허용).{0,4}|(?:قبول|موافق).{0,12})$", "iu");
  const buttonsIn = (element) => {
    const found = [];
    const scopes = [element];
    for (const scope of scopes) {
      for (const inner of t.queryIn(scope, "*")) {
        const shadow = t.shadowOf(inner);
        if (shadow) scopes.push(shadow);
        if (t.matches(inner, "button, [role=button], a, input[type=button], input[type=submit], [onclick]") && t.isRendered(inner)) found.push(inner);
      }
      const own = scope instanceof Element ? t.shadowOf(scope) : null;
      if (own && !scopes.includes(own)) scopes.push(own);
    }
    return found;
  };
  const nameOf = (button) => t.normal(t.textContent(button) || t.attribute(button, "aria-label") || t.attribute(button, "value") || "").replace(/^[✓✔×✕\s]+|[\s→›.!]+$/gu, "");
  const isLeaving = (button) => {
    const href = t.tag(button) === "a" ? t.attribute(button, "href") : null;
    return href !== null && !/^(?:#.*|javascript:.*|)$/i.test(href.trim());
  };
  // Names that would also send a form, or that agree to nothing in particular.
  const WEAK = new RegExp("^(?:(?:yes,? )?(?:i )?(?:got it|ok(?:ay)?|understand|understood|continue|dismiss|close|confirm|save)(?! all)\\b.*|that'?s (?:ok|fine)|opt.?out.*|(?:only )?(?:required|functional|necessary|essential)|non merci|no,? ?(?:thanks?)?"
    + "|verstanden|auswahl (?:speichern|bestätigen)|d'accord|j'ai compris|entendido|ho capito|entendi|хорошо|понятно)$", "iu");
  const FIELDS = "textarea, select, input:not([type=hidden]):not([type=submit]):not([type=button]):not([type=image]):not([type=reset])";
  const TOGGLES = "[type=checkbox], [type=radio]";
  const fieldsIn = (element) => [...t.queryIn(element, FIELDS)].filter((field) => t.isRendered(field));
  // Whether something is to be typed or chosen there; switches of single purposes are a banner's own.
  const asksForInput = (element) => fieldsIn(element).some((field) => !t.matches(field, TOGGLES));
  const formOf = (button) => t.closest(button, "form") ?? t.byId(button, t.attribute(button, "form"));
  const isOfInputForm = (button) => { const form = formOf(button); return form !== null && asksForInput(form); };
  // The answer that a page which is all about consent takes: one that says what it does, and that sends nothing else.
  const namedChoiceIn = (element) => {
    const buttons = buttonsIn(element).filter((button) => {
      const form = formOf(button);
      return !isLeaving(button) && nameOf(button).length <= 60 && !WEAK.test(nameOf(button)) && !(form && fieldsIn(form).length);
    });
    const refusal = buttons.find((button) => REJECT.test(nameOf(button)));
    const agreement = buttons.find((button) => ACCEPT.test(nameOf(button)));
    return refusal ?? agreement ?? null;
  };
  const choiceIn = (element) => {
    const buttons = buttonsIn(element).filter((button) => !isLeaving(button) && !isOfInputForm(button) && nameOf(button).length <= 60);
    const names = buttons.map((button) => [button, nameOf(button)]);
    const refusal = names.find(([, name]) => REJECT.test(name));
    if (refusal) return ["rejected", refusal[0]];
    const agreement = names.find(([, name]) => ACCEPT.test(name));
    return agreement ? ["accepted", agreement[0]] : null;
  };
  const isConsentText = (text) => SUBJECT.test(text) && CONSENT.test(text);
  globalThis.pageConsent = { VENDORS, isConsentText, choiceIn, namedChoiceIn, asksForInput, buttonsIn, nameOf, isLeaving, SUBJECT };
}
