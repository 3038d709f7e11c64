"""Words by which a report's parts are told apart.

They are words of lists of sources, of talk, of counting and of abbreviations.
"""

import re

LIST_HEADINGS = (
    r"works cited|(?:list of |cited |key )?references?(?: list| cited)?|sources?(?: cited| used| "
    r"consulted| list)?"
    r"|list of sources|bibliography|citations?|footnotes?|end ?notes|notes|literature(?: "
    r"cited)?|further reading"
    r"|links?|(?:sources?|references?|notes) (?:and|&) "
    r"(?:references?|sources?|notes|links|further reading)"
    r"|参考文献|參考文獻|参考资料|參考資料|参考来源|引用|引用的著作|引用文献|引用来源|来源|來源|资料来源|資料來源|文献|注释|脚注"
    r"|出典|参照|参考|脚注|참고문헌|참고 ?자료|출처|المراجع|المصادر|مراجع|مصادر|מקורות|ביבליוגרפיה|منابع"
    r"|quellen(?:verzeichnis|angaben)?|literatur(?:verzeichnis)?|einzelnachweise|fußnoten|références|bibliographie|notes de bas de page"
    r"|referencias|fuentes|bibliografía|notas|riferimenti|fonti|bibliografia|note|referências|fontes"
    r"|источники|литература|список литературы|ссылки|примечания|список источников|использованн(?:ые источники|ая литература)"
    r"|kaynaklar|kaynakça|źródła|przypisy|bronnen|källor|referenser|kilder|kildeliste|referanser|lähteet|viitteet"
    r"|zdroje|források|surse|izvori|джерела|स्रोत|स?न्?दर्भ|संदर्भ|tài liệu tham khảo|nguồn|sumber|referensi|daftar pustaka"
    r"|fuentes (?:consultadas|utilizadas|citadas)|referencias bibliográficas|referências bibliográficas|sources (?:consultées|citées)"
    r"|(?:verwendete|weitere) quellen|weiterführende links|sitografia|fonti consultate|قائمة (?:المراجع|المصادر)|المصادر والمراجع"
    r"|obras citadas|trabalhos citados|opere citate|ouvrages cités|œuvres citées|zitierte (?:quellen|werke)|referenzen|geciteerde? werk(?:en)?"
    r"|cytowane prace|цитируемые (?:работы|источники)|sources des citations"
    r"|参考链接|参考网址|信息来源|数据来源|参考书目|参考サイト|参考url|引用元|情報源|出典一覧|참고 링크"
)

# "n.d." stands for a year that is not known.
# "1990s" is a decade.
YEAR = r"(?:\b(?:1[5-9]|20)\d\d[a-rt-z]?\b|\bn\.\s?d\.)"

_LIST_HEADING = re.compile(
    rf"[\W\d_]*(?:[ivx]+\.\s*)?(?:{LIST_HEADINGS})[\W_]*(?:\([^()]*\))?[\W_]*", re.IGNORECASE
)

_MAX_HEADING_CHARS = 100


def is_list_heading(text: str) -> bool:
    """Tell whether a line is the heading of a list of sources, alone."""
    line = text.strip()
    return len(line) < _MAX_HEADING_CHARS and _LIST_HEADING.fullmatch(line) is not None


NUMBERING = frozenset(
    "fig figs no nos vol p pp sec eq eqs ca ch chap ver v art para ref refs tab approx st "
    "nr".split()
)
# A number behind one of these counts or names something.
COUNTING = frozenset(
    (
        "a about above across after age aged all almost and another approach approximately are"
        " around as at been before below between by days equals exactly fewer first for from had"
        " has have in is just last least less likely lines maybe months more most nearly next"
        " number of on only or over pages per perhaps possibly probably range reached roughly round"
        " some than the these those tip to top total under up use was were with years"
    ).split()
)
# A number behind one of these, without an adjective, is its number.
NUMBERED = frozenset(
    (
        "book case category chapter class cluster day equation example experiment figure game grade"
        " group hypothesis issue item layer level line mechanism method model month option page"
        " paragraph part phase point question reason rule scenario section stage step strategy"
        " study table task tier type version volume week year zone"
    ).split()
)

_MONTHS = "jan feb mar apr may jun jul aug sep sept oct nov dec".split()
# A year behind one of these is that of a date, an event, a journal, a product or a place.
NO_AUTHORS = NUMBERED.union(
    (
        "january february march april may june july august september october november december"
        " januar februar märz mai juni juli oktober dezember janvier février mars avril juin juillet"
        " août septembre octobre novembre décembre enero febrero marzo abril mayo junio julio agosto"
        " septiembre octubre noviembre diciembre gennaio febbraio aprile maggio giugno luglio"
        " settembre ottobre dicembre spring summer autumn fall winter early mid late quarter"
        " monday tuesday wednesday thursday friday saturday sunday fiscal fy cy circa since until"
        " born died founded established released updated revised published accessed retrieved"
        " edition census election elections olympics expo cup championship championships season"
        " nature science cell lancet neuron jama bmj plos elsevier springer wiley routledge sage"
        " windows office server studio android ios macos ubuntu photoshop autocad"
        " tokyo paris london beijing rio athens sydney atlanta barcelona seoul moscow munich berlin"
        " rome vienna geneva kyoto copenhagen glasgow dubai doha cancun marrakesh bonn madrid lisbon"
        " brussels amsterdam stockholm oslo helsinki dublin edinburgh milan turin"
        " vancouver toronto montreal chicago boston washington york angeles francisco houston"
        " mexico lima bogota santiago lagos nairobi cairo johannesburg delhi mumbai jakarta manila"
        " bangkok singapore shanghai shenzhen osaka taipei hanoi melbourne brisbane auckland"
        " africa america asia europe australia austria belgium brazil canada chile china colombia"
        " denmark egypt england finland france germany greece india indonesia iran iraq ireland"
        " israel italy japan kenya korea malaysia netherlands nigeria norway pakistan poland"
        " portugal russia scotland spain sweden switzerland taiwan thailand turkey ukraine"
        " vietnam wales zealand"
    ).split(),
    _MONTHS,
)

# Where in a source: ", p. 3", ": 12", ", ch. 2", ", May 3".
LOCATOR = (
    rf"(?:\s?[,:，：;]?\s?(?:(?i:[^\W\d_]{{1,9}}\.|§+|¶+|pp?|第|(?:{'|'.join(sorted(NUMBERED))}|appendix|note)s?)\s?"
    rf"|(?i:{'|'.join(_MONTHS)})[a-z]*\.?\s)"
    rf"|\s?[,:，：]\s?)(?!{YEAR})(?:\d{{1,5}}|[ivxlcIVX]+)\b(?:[.:–-]\d+|,\s?(?!{YEAR})\d+)*(?:ff?\.?)?[页頁章]?"
)

# Behind a number in a sentence, these do not go with what it counts.
FOLLOWING = frozenset(
    "and but while whereas which although because is are was were has have had may can that as with or "
    "und aber sowie ist sind war et mais est sont y pero es son".split()
)
UNITS = frozenset(
    "m km cm mm nm dm µm μm ft in yd mi ha kg g mg l ml s ms h min w kw mw gw kwh hz khz mhz ghz pa kpa mol k "
    "co h o n ch so no nh sio tio".split()
)

SOURCE_WORD = r"(?:refs?\.?|references?|sources?|src|cit(?:ation)?|来源|來源|资料|文献|参考|출처|출典|出典|quelle|fuente)"

SOURCE_LABELS = (
    r"(?:sources?|refs?|references?|see|via|cf\.?|来源|來源|资料来源|資料來源|出典|출처|参考|quellen?|fuentes?|fonti?"
    r"|источники?|źródł[oa]|kaynak|bron(?:nen)?|kilder?|källa|المصدر|المصادر|מקור)"
)

# In brackets behind a sentence: its author has no source, or a reader asks for one.
ASKS_FOR_SOURCE = (
    r"(?:(?:[a-z-]+ ){0,3}(?:citations?|sources?|references?|verification|clarification|page|attribution) needed|citation needed\b.{0,40}"
    r"|(?:source|reference|citation|quelle|bron|källa|kilde|lähde|zdroj|citace|fonte|fuente|when|who|which|where|why|how|by whom|according to whom)s?\s?[?？]"
    r"|(?:verification failed|failed verification|(?:permanent )?dead link|unreliable source|original research|not in citation(?: given)?|dubious\b.{0,20})\??"
    r"|belege? fehl(?:t|en)|nachweis fehlt|réf(?:érence|\.)? (?:nécessaire|souhaitée)|source insuffisante|cita requerida|citación requerida|senza fonte|citazione necessaria"
    r"|carece de fontes|falta fonte|carece de fuentes|necessita citació|bron gevraagd|bron nodig|potrzebn[ye] (?:przypis|źródło)|kaynak belirtilmeli|källa behövs|kilde mangler"
    r"|trenger referanse|kilde trengs|lähde tarvitaan|zdroj\?|forrás\?|источник не указан\b.{0,20}|источник\?|потрібне джерело|джерело\?|cần dẫn nguồn|butuh rujukan"
    r"|要出典|[来來]源請求|[来來]源请求|出典無効|출처 필요|بحاجة لمصدر|نیازمند منبع|דרוש מקור|cn|fact)"
)

_LINK_LABELS = (
    r"urls?|web ?site|links?|evidence|citations?|citing|cited from|retrieved from|read more|more|further reading"
    r"|siehe|belege?|nachweise?|lien|enlace|referencia|ссылка|链接|参考链接|參考連結|링크|リンク|参照"
)
SOURCE_LINE = re.compile(
    rf"\s*[—―]|[(（]{SOURCE_LABELS}\s+(?=https?:|[\[\x00\x01])|[\W\d_]*(?:{SOURCE_LABELS}\b[^.。:：]{{0,60}}|(?:{_LINK_LABELS})\W{{0,3}}?)[:：]",
    re.IGNORECASE,
)

# Behind a digit, a straight mark stands for inches.
QUOTATION = re.compile(
    r'(?<!\w)"[^"]{1,400}"|„[^„“”]{1,400}[“”]|“[^“”]{1,400}”|«[^«»]{1,400}»|»[^«»]{1,400}«'
    "|「[^「」]{1,400}」|『[^『』]{1,400}』"
)

# Behind a name, such as "World War", or another word that is numbered, "I" is a number.
_BEFORE_I = (
    rf"(?:^|[^\w\s]\s*|(?<![\w'’-])(?!(?:{'|'.join(sorted(NUMBERED))})\s)[a-zß-ÿ][\w'’-]*\s"
    r"|\b(?:After|Although|And|As|Because|Before|But|First|Here|How|If|Next|Now|Since|So|Then|What|When|Where|While)\s)"
)
# The first person, and offers at the start of a sentence.
TALK = re.compile(
    rf"{_BEFORE_I}I(?:['’](?:ll|ve|m|d)\b| "
    r"(?:will|need|have|can|could|would|should|am|was|found|searched|prioritized|also|focus"
    r"|flag|recommend|propose|looked|want|must|used|tried|did|do|think|believe|now|then|first|next|shall|may|might)\b)"
    r"|\b[Ll]et (?:me|us)\b|\b[Ll]et['’]s\b|我(?:们)?(?:需要|将要?|会先|先|已经|可以|现在|正在|打算|想要?|来)|让我|接下来，?我"
    r"|\b(?:Ich werde|Ich habe|Lassen Sie mich|Je vais|J['’]ai|Laissez-moi|Voy a|He "
    r"encontrado|Déjame|Vou)\b"
    r"|^(?i:\W*(?:if (?:helpful|useful|you (?:want|like|tell|need|would|prefer))|would you "
    r"like|(?:please )?let me know|sure[,!.]|certainly[,!.]"
    r"|of course[,!.]|here(?:['’]s| is| are) (?:a|an|the|your|my) "
    r"[^.]*[:.]$|如果(?:您|你)(?:需要|愿意|希望)))"
)

ABBREVIATION = re.compile(
    r"(?:\b(?:im|am|vom|zum|zur|seit|bis|ab|beim|der|die|das|dem|den|des)\s\d{1,2}|\b(?:e\.g|i\.e|cf|vs|etc|al|approx|ca|fig|figs|no|nos|vol|dr|mr|mrs|ms|prof|st|jr|sr|inc|ltd|co|corp|dept"
    r"|est|eq|sec|ch|pp?|ed|eds|rev|art|gen|gov|sen|rep|u\.s|u\.k|e\.u|a\.m|p\.m|ph\.d|z\.b|d\.h|bzw|vgl|nr|bd|mio|mrd|tsd|inkl|exkl|ggf|evtl|max|min|sog|geb|gest|jh|av|env|núm|pág|aprox|mln|mld|tys|тыс|млн|млрд|г|гг|др|ул)|(?<!\d )(?<!> )\b[A-Z])\.$",
    re.IGNORECASE,
)
