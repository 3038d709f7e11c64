"""Names, parameters and defaults that eval scripts use (eval-scripts.md), and a light import."""

import importlib
import inspect
import json
import subprocess
import sys

import pytest

NAMES = {
    "mind2web2": "Evaluator VerificationNode AggregationStrategy CacheFileSys LLMClient Extractor "
    "Verifier EvaluatorConfig create_evaluator ArxivTool GoogleMapsTool PDFParser "
    "load_eval_script calculate_api_cost",
    "mind2web2.evaluator": "Evaluator AggregationStrategy VerificationNode",
    "mind2web2.verification_tree": "VerificationNode AggregationStrategy",
    "mind2web2.eval_toolkit": "Extractor Verifier EvaluatorConfig BinaryEvalResult "
    "create_evaluator "
    "LLMClient",
    "mind2web2.eval_runner": "DualSemaphore evaluate_task merge_all_results "
    "generate_result_summary",
    "mind2web2.llm_client.base_client": "LLMClient",
    "mind2web2.llm_client": "LLMClient OpenAIClient AsyncOpenAIClient AzureOpenAIClient "
    "AsyncAzureOpenAIClient calculate_api_cost",
    "mind2web2.utils.cache_filesys": "CacheFileSys",
    "mind2web2.utils.misc": "text_dedent normalize_url_markdown encode_image encode_image_buffer "
    "strip_extension",
    "mind2web2.utils.url_tools": "remove_utm_parameters normalize_url_simple "
    "normalize_url_for_browser "
    "regex_find_urls URLs",
    "mind2web2.utils.path_config": "PathConfig",
    "mind2web2.utils.load_eval_script": "load_eval_script",
    "mind2web2.utils.logging_setup": "create_logger cleanup_logger create_sub_logger",
    "mind2web2.utils.page_info_retrieval": "BatchBrowserManager",
    "mind2web2.api_tools": "GoogleMapsTool ArxivTool PDFParser is_pdf tool_googlemap tool_arxiv "
    "tool_pdf",
    "mind2web2.api_tools.tool_googlemap": "GoogleMapsTool",
    "mind2web2.api_tools.tool_arxiv": "ArxivTool",
    "mind2web2.api_tools.tool_pdf": "PDFParser is_pdf",
}
IMPORTS = [(module, name) for module, names in NAMES.items() for name in names.split()]

# name -> parameters as published; "*" opens those by keyword only, "**" stands for further ones.
SIGNATURES = {
    "mind2web2.evaluator:Evaluator": "",
    "mind2web2.evaluator:Evaluator.initialize": "task_id strategy='parallel' agent_name=None "
    "answer_name=None * client=None task_description=None answer='' global_cache=None "
    "global_semaphore=None logger=None default_model='o4-mini' extract_model=None "
    "verify_model=None config=None browser_manager=None **",
    "mind2web2.evaluator:Evaluator.add_parallel": "id desc parent=None **",
    "mind2web2.evaluator:Evaluator.add_sequential": "id desc parent=None **",
    "mind2web2.evaluator:Evaluator.add_leaf": "id desc parent=None critical=False score=0.0 "
    "status='initialized' **",
    "mind2web2.evaluator:Evaluator.add_custom_node": "result id desc parent=None critical=True **",
    "mind2web2.evaluator:Evaluator.add_existence_node": "result id desc **",
    "mind2web2.evaluator:Evaluator.extract": "prompt template_class extraction_name='extraction' "
    "source=None "
    "additional_instruction=None * use_screenshot=True",
    "mind2web2.evaluator:Evaluator.verify": "claim node sources=None * extra_prerequisites=None "
    "additional_instruction='None' majority_vote=None num_trials=None use_screenshot=None",
    "mind2web2.evaluator:Evaluator.batch_verify": "claims_and_sources * extra_prerequisites=None "
    "majority_vote=None num_trials=None use_screenshot=None",
    "mind2web2.evaluator:Evaluator.add_ground_truth": "gt_info gt_type='ground_truth'",
    "mind2web2.evaluator:Evaluator.add_custom_info": "info info_type='custom' info_name=None",
    "mind2web2.evaluator:Evaluator.score": "",
    "mind2web2.evaluator:Evaluator.get_summary": "",
    "mind2web2.evaluator:Evaluator.find_node": "node_id",
    "mind2web2.evaluator:Evaluator.get_all_node_ids": "",
    "mind2web2.evaluator:Evaluator.check_id_available": "node_id",
    "mind2web2.evaluator:Evaluator.get_node_count": "",
    "mind2web2.evaluator:Evaluator.close": "",
    "mind2web2.verification_tree:VerificationNode.add_node": "node",
    "mind2web2.verification_tree:VerificationNode.compute_score": "mutate=False",
    "mind2web2.eval_toolkit:create_evaluator": "* client task_description answer global_cache "
    "global_semaphore logger default_model='o4-mini' extract_model=None verify_model=None "
    "config=None browser_manager=None",
    "mind2web2.eval_toolkit:Extractor.simple_extract": "extraction_prompt template_class "
    "additional_instruction='None' *",
    "mind2web2.eval_toolkit:Extractor.extract_from_url": "extraction_prompt url template_class * "
    "additional_instruction='None' use_screenshot=True",
    "mind2web2.eval_toolkit:Verifier.simple_verify": "claim node=None **",
    "mind2web2.eval_toolkit:Verifier.verify_by_url": "claim url node=None **",
    "mind2web2.eval_toolkit:Verifier.verify_by_urls": "claim urls node=None **",
    "mind2web2.eval_toolkit:Extractor.get_page_info": "url",
    "mind2web2.eval_toolkit:Verifier.get_page_info": "url",
    "mind2web2.eval_runner:DualSemaphore": "webpage_semaphore llm_semaphore",
    "mind2web2.eval_runner:evaluate_task": "client task_id agent_name answer_dir cache_dir "
    "output_dir script_path dump_cache=True is_self_debug=False overwrite=False "
    "max_concurrent_answers=3 webpage_semaphore=None llm_semaphore=None",
    "mind2web2.eval_runner:merge_all_results": "output_dir",
    "mind2web2.eval_runner:generate_result_summary": "output_dir agent_name",
    "mind2web2.utils.cache_filesys:CacheFileSys": "task_dir",
    "mind2web2.utils.cache_filesys:CacheFileSys.put_web": "url text screenshot",
    "mind2web2.utils.cache_filesys:CacheFileSys.put_pdf": "url pdf_bytes",
    "mind2web2.utils.cache_filesys:CacheFileSys.get_web": "url get_screenshot=True",
    "mind2web2.utils.cache_filesys:CacheFileSys.get_pdf": "url",
    "mind2web2.utils.cache_filesys:CacheFileSys.has": "url",
    "mind2web2.utils.cache_filesys:CacheFileSys.has_web": "url",
    "mind2web2.utils.cache_filesys:CacheFileSys.has_pdf": "url",
    "mind2web2.utils.cache_filesys:CacheFileSys.get_all_urls": "",
    "mind2web2.utils.cache_filesys:CacheFileSys.summary": "",
    "mind2web2.utils.cache_filesys:CacheFileSys.save": "",
    "mind2web2.utils.cache_filesys:CacheFileSys.clear": "",
    "mind2web2.llm_client:LLMClient": "provider is_async=False *",
    "mind2web2.llm_client:calculate_api_cost": "input_tokens output_tokens model_name",
    "mind2web2.utils.load_eval_script:load_eval_script": "path",
    "mind2web2.utils.logging_setup:create_logger": "lgr_nm log_folder enable_console=True",
    "mind2web2.utils.logging_setup:cleanup_logger": "logger",
    "mind2web2.utils.logging_setup:create_sub_logger": "parent_logger sub_name",
    "mind2web2.utils.misc:text_dedent": "multi_line_str",
    "mind2web2.utils.misc:normalize_url_markdown": "url",
    "mind2web2.utils.misc:encode_image": "image_path",
    "mind2web2.utils.misc:encode_image_buffer": "buffer",
    "mind2web2.utils.misc:strip_extension": "filename",
    "mind2web2.utils.url_tools:remove_utm_parameters": "url",
    "mind2web2.utils.url_tools:normalize_url_simple": "url",
    "mind2web2.utils.url_tools:normalize_url_for_browser": "url",
    "mind2web2.utils.url_tools:regex_find_urls": "text",
    "mind2web2.utils.path_config:PathConfig": "project_root",
    "mind2web2.utils.path_config:PathConfig.default_script_for": "task_id",
    "mind2web2.api_tools:GoogleMapsTool": "",
    "mind2web2.api_tools:GoogleMapsTool.get_city_name": "address level='locality'",
    "mind2web2.api_tools:GoogleMapsTool.get_address_information": "address",
    "mind2web2.api_tools:GoogleMapsTool.calculate_distance": "address1 address2 mode='driving'",
    "mind2web2.api_tools:GoogleMapsTool.calculate_travel_time": "address1 address2 mode='driving'",
    "mind2web2.api_tools:ArxivTool": "page_size=100",
    "mind2web2.api_tools:ArxivTool.search_arxiv_by_id": "arxiv_id",
    "mind2web2.api_tools:ArxivTool.search_arxiv_by_title": "title",
    "mind2web2.api_tools:ArxivTool.is_arxiv_pdf_link": "link",
    "mind2web2.api_tools:ArxivTool.get_arxiv_id_from_pdf_link": "link",
    "mind2web2.api_tools:PDFParser": "",
    "mind2web2.api_tools:PDFParser.extract": "source",
    "mind2web2.api_tools:is_pdf": "url logger=None",
}
COROUTINES = {
    "mind2web2.evaluator:Evaluator": "extract verify batch_verify close",
    "mind2web2.eval_toolkit:Extractor": "simple_extract extract_from_url get_page_info "
    "call_llm_with_semaphore",
    "mind2web2.eval_toolkit:Verifier": "simple_verify verify_by_url verify_by_urls get_page_info "
    "call_llm_with_semaphore",
    "mind2web2.api_tools:GoogleMapsTool": "get_city_name get_address_information "
    "calculate_distance "
    "calculate_travel_time",
    "mind2web2.api_tools:ArxivTool": "search_arxiv_by_id search_arxiv_by_title",
    "mind2web2.api_tools:PDFParser": "extract",
    "mind2web2.llm_client:LLMClient": "async_response",
}
HEAVY = (
    "anthropic",
    "arxiv",
    "genai_prices",
    "googlemaps",
    "openai",
    "PIL",
    "pypdfium2",
    "rich",
)


def published(address):
    """Return the object at ``module:name.name``."""
    module, _, path = address.partition(":")
    found = importlib.import_module(module)
    for name in path.split("."):
        found = getattr(found, name)
    return found


def parameters_of(called):
    """Return the parameters of a call, without the instance."""
    listed = list(inspect.signature(called).parameters.values())
    return listed[1:] if listed and listed[0].name == "self" else listed


@pytest.mark.parametrize(("module", "name"), IMPORTS)
def test_published_names_can_be_imported(module, name):
    space = {}
    exec(f"from {module} import {name} as taken\nimport {module}", space)
    whole = space[module.split(".")[0]]
    for part in module.split(".")[1:]:
        whole = getattr(whole, part)
    assert getattr(whole, name) is space["taken"]
    assert not name.startswith("tool_") or inspect.ismodule(space["taken"])


@pytest.mark.parametrize("address", SIGNATURES)
def test_published_signatures_are_kept(address):
    """Names, order and defaults; what was added has a default of its own."""
    expected, keyword_only, further = SIGNATURES[address].split(), False, False
    actual = parameters_of(published(address))
    given = {parameter.name: parameter for parameter in actual}
    position = 0
    for text in expected:
        name, _, default = text.partition("=")
        if text in ("*", "**"):
            keyword_only, further = keyword_only or text == "*", further or text == "**"
            continue
        parameter = given[name]
        assert keyword_only or actual[position] is parameter
        shown = "" if parameter.default is parameter.empty else repr(_plain(parameter.default))
        assert shown == default, f"{address}: {name}"
        assert (parameter.kind is parameter.KEYWORD_ONLY) is keyword_only
        position += 1
    assert any(parameter.kind is parameter.VAR_KEYWORD for parameter in actual) or not further
    optional = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    assert all(
        each.default is not each.empty or each.kind in optional for each in actual[position:]
    )


def _plain(default):
    """Return an enum's value, any other default as it is."""
    return getattr(default, "value", default)


@pytest.mark.parametrize("owner", COROUTINES)
def test_published_coroutines_are_awaited(owner):
    """Scripts write ``await`` before them."""
    for name in COROUTINES[owner].split():
        assert inspect.iscoroutinefunction(getattr(published(owner), name)), name
    assert inspect.iscoroutinefunction(published("mind2web2.api_tools:is_pdf"))
    assert inspect.iscoroutinefunction(published("mind2web2.eval_runner:evaluate_task"))


def test_arxiv_links_are_told_without_an_instance():
    """The two link functions work on the class as on an instance."""
    tool = published("mind2web2:ArxivTool")
    link = "https://arxiv.org/pdf/2506.21506"
    for called in (tool, tool()):
        assert called.get_arxiv_id_from_pdf_link(link) == "2506.21506"
        assert called.is_arxiv_pdf_link(link)


def test_tools_are_built_without_a_key(monkeypatch):
    """A script may build them and never call them."""
    monkeypatch.delenv("GOOGLE_MAPS_API_KEY", raising=False)
    for name in ("GoogleMapsTool", "ArxivTool", "PDFParser"):
        assert published(f"mind2web2.api_tools:{name}")()


def test_a_verdict_has_the_published_fields():
    """Any further field has a default."""
    fields = published("mind2web2.eval_toolkit:BinaryEvalResult").model_fields
    assert {name: field.annotation for name, field in fields.items() if field.is_required()} == {
        "reasoning": str,
        "result": bool,
    }


def test_paths_have_the_published_attributes(tmp_path):
    """Folders under the project's root."""
    paths = published("mind2web2.utils.path_config:PathConfig")(tmp_path)
    for name, folder in (
        ("answers_root", "answers"),
        ("eval_scripts_root", "eval_scripts"),
        ("eval_results_root", "eval_results"),
        ("cache_root", "cache"),
    ):
        assert getattr(paths, name) == tmp_path / folder
    assert hasattr(paths, "eval_version")
    assert callable(paths.apply_overrides)


@pytest.mark.parametrize(
    "module",
    [
        "mind2web2",
        "mind2web2.evaluator",
        "mind2web2.eval_runner",
        "mind2web2.llm_client",
        "mind2web2.api_tools",
        "mind2web2.utils.cache_filesys",
        "mind2web2.cli",
    ],
)
def test_importing_loads_nothing_heavy(module):
    """``run_eval.py --help`` answers at once: SDKs, browser and PDF come when they are needed."""
    code = (
        "import importlib, json, sys; package = importlib.import_module(sys.argv[1]);"
        "[getattr(package, name) for name in getattr(package, '__all__', [])];"
        "print(json.dumps(sorted({name.split('.')[0] for name in sys.modules})))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, module], capture_output=True, text=True, check=True
    )
    assert set(HEAVY).isdisjoint(json.loads(done.stdout))


def test_help_loads_nothing_that_connects():
    """No parser does: that would take a third of the time of ``--help``."""
    code = (
        "import atexit, pkgutil, sys; from mind2web2.cli import main, parsers;"
        "[pkgutil.resolve_name(f'{parsers.__name__}.{each.name}')"
        " for each in pkgutil.iter_modules(parsers.__path__)];"
        "atexit.register(lambda: print(not {'ssl', 'pydantic'}.isdisjoint(sys.modules)));"
        "main(['evaluate', '--help'])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.endswith("False\n")


def test_unknown_names_of_the_package_are_errors():
    with pytest.raises(ImportError, match="Nonsense"):
        exec("from mind2web2 import Nonsense")
