"""The examples of the documentation are read by the code that would read them."""

import ast
import json

import pytest

from executors.command.config import parse
from executors.http.config import load
from ledger.api import schemas
from ledger.policies import policy_for
from ledger.registry import Declaration
from recovery.api import schemas as recovery_schemas
from standalone.closing import EXAMPLE
from tests.docs import reading
from tests.docs.reading import ROOT, Fence


def id_of(fence: Fence) -> str:
    return f"{fence.page}:{fence.text.splitlines()[0][:40]}"


@pytest.mark.parametrize("fence", reading.fences("python"), ids=id_of)
def test_a_python_example_compiles(fence: Fence) -> None:
    assert ast.parse(fence.text).body


@pytest.mark.parametrize("fence", reading.fences("python"), ids=id_of)
def test_a_python_example_imports_only_names_that_exist(fence: Fence) -> None:
    imports = [node for node in ast.walk(ast.parse(fence.text)) if isinstance(node, ast.ImportFrom)]
    source = "\n".join(ast.unparse(node) for node in imports)
    exec(compile(source, fence.page, "exec"), {})  # noqa: S102 imports of our own pages


@pytest.mark.parametrize("fence", reading.fences("json"), ids=id_of)
def test_a_json_example_is_json_and_has_the_shape_it_claims(fence: Fence) -> None:
    value = json.loads(fence.text)
    if fence.shape:
        module = schemas if hasattr(schemas, fence.shape) else recovery_schemas
        shape = getattr(module, fence.shape).model_validate(value)
        assert not set(value) - set(type(shape).model_fields)
    if fence.shape in ("ToolIn", "PolicyIn"):
        assert policy_for(value["policy"]).recovery_class == value["policy"]["recovery_class"]


@pytest.mark.parametrize(
    "fence", [each for each in reading.fences("json") if each.shape == "ToolIn"], ids=id_of
)
def test_a_tool_of_the_tutorial_has_a_configuration_that_its_executor_reads(fence: Fence) -> None:
    tool = json.loads(fence.text)
    Declaration(
        name="desk.example", executor=tool["executor"], config=tool["config"],
        input_schema=tool["input_schema"], effect_kinds=tool.get("effect_kinds", ()),
    ).check()  # fmt: skip
    {"http": load, "command": parse}[tool["executor"]](tool["config"])


SHAPES = {"/calls": "SubmitIn", "/sessions": "SessionIn", "/sessions/$SESSION/turns": "TurnIn",
          "/sessions/$SESSION/turns/$TURN/end": "TurnEndIn"}  # fmt: skip


@pytest.mark.parametrize(("where", "path", "body"), reading.curl_bodies())
def test_a_body_that_a_page_sends_is_accepted_by_the_schema(
    where: str, path: str, body: str
) -> None:
    value = json.loads(body)
    shape = getattr(schemas, SHAPES[path])
    assert not set(value) - set(shape.model_fields)
    assert shape.model_validate(value)


def test_the_readme_sends_a_call_of_a_tool_that_the_sandbox_has() -> None:
    bodies = [json.loads(body) for page, _, body in reading.curl_bodies() if page == "README.md"]
    assert [each["tool"] for each in bodies] == ["sandbox.lookup"]
    assert (ROOT / "sandbox" / "tools" / "lookup.py").exists()


def test_the_readme_line_is_the_one_that_up_prints() -> None:
    body = next(body for page, _, body in reading.curl_bodies() if page == "README.md")
    assert json.loads(body) == EXAMPLE


def test_the_pages_send_at_least_these_bodies() -> None:
    paths = [path for _, path, _ in reading.curl_bodies()]
    assert paths.count("/calls") >= 5
    assert set(SHAPES) <= set(paths)
