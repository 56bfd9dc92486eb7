"""One conversation as each provider writes it: sound, with everything that a provider may add.

Acme asks for an invoice to be checked: system text, a picture, reasoning, two calls at once of
which one fails, a tool that the provider runs itself, a further call, a last question. Written
from the providers' public references.
"""

from typing import Any

PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII="
)
RULES = "You check invoices for Acme. Pay nothing."
ASKED = "Is this invoice right? The order is 4711."
PLAN = "I need the order and the supplier."
THOUGHT = "The order has the price; the supplier has the address."
ORDER = '{"order":4711,"total":"118.00"}'
REFUSED = "The register of suppliers did not answer within 10 s."
AGAIN = "Try the supplier again, please."
SUPPLIER = "Blue Ltd, 4 Harbour Street"
ANSWER = "The total is right."
LAST = "Thanks. Anything else?"

ANTHROPIC: dict[str, Any] = {
    "model": "claude-sonnet-4-5",
    "max_tokens": 4096,
    "thinking": {"type": "enabled", "budget_tokens": 2048},
    "system": [{"type": "text", "text": RULES, "cache_control": {"type": "ephemeral"}}],
    "messages": [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": ASKED},
                {
                    "type": "image",
                    "source": {"type": "base64", "media_type": "image/png", "data": PIXEL},
                },
            ],
        },
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": THOUGHT, "signature": "EqQBCgIYAhIM1g"},
                {"type": "text", "text": PLAN},
                {
                    "type": "tool_use",
                    "id": "toolu_01Order",
                    "name": "read_order",
                    "input": {"order": 4711},
                },
                {
                    "type": "tool_use",
                    "id": "toolu_02Supplier",
                    "name": "find_supplier",
                    "input": {"name": "Blue"},
                },
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "toolu_01Order", "content": ORDER},
                {
                    "type": "tool_result",
                    "tool_use_id": "toolu_02Supplier",
                    "content": [{"type": "text", "text": REFUSED}],
                    "is_error": True,
                    "cache_control": {"type": "ephemeral"},
                },
                {"type": "text", "text": AGAIN},
            ],
        },
        {
            "role": "assistant",
            "content": [
                {"type": "redacted_thinking", "data": "EmwKAhgBEgy3va3pzix"},
                {
                    "type": "server_tool_use",
                    "id": "srvtoolu_01Web",
                    "name": "web_search",
                    "input": {"query": "Blue Ltd address"},
                },
                {
                    "type": "web_search_tool_result",
                    "tool_use_id": "srvtoolu_01Web",
                    "content": [
                        {
                            "type": "web_search_result",
                            "url": "https://blue.example/",
                            "title": "Blue Ltd",
                            "encrypted_content": "EqgfCioIARgB",
                        }
                    ],
                },
                {
                    "type": "tool_use",
                    "id": "toolu_03Again",
                    "name": "find_supplier",
                    "input": {"name": "Blue Ltd"},
                },
            ],
        },
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "toolu_03Again",
                    "content": [
                        {"type": "text", "text": SUPPLIER},
                        {
                            "type": "image",
                            "source": {"type": "url", "url": "https://blue.example/door.png"},
                        },
                    ],
                }
            ],
        },
        {
            "role": "assistant",
            "content": [
                {
                    "type": "text",
                    "text": ANSWER,
                    "citations": [
                        {
                            "type": "web_search_result_location",
                            "url": "https://blue.example/",
                            "title": "Blue Ltd",
                            "encrypted_index": "Eo8BCioIAhgB",
                            "cited_text": "4 Harbour Street",
                        }
                    ],
                }
            ],
        },
        {"role": "user", "content": LAST},
    ],
}

RESPONSES: dict[str, Any] = {
    "model": "gpt-5",
    "store": False,
    "include": ["reasoning.encrypted_content"],
    "instructions": RULES,
    "input": [
        {
            "role": "user",
            "content": [
                {"type": "input_text", "text": ASKED},
                {
                    "type": "input_image",
                    "detail": "auto",
                    "image_url": f"data:image/png;base64,{PIXEL}",
                },
            ],
        },
        {
            "type": "reasoning",
            "id": "rs_01plan",
            "summary": [{"type": "summary_text", "text": THOUGHT}],
            "encrypted_content": "gAAAAABo",
        },
        {
            "type": "message",
            "id": "msg_01plan",
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": PLAN, "annotations": [], "logprobs": []}],
        },
        {
            "type": "function_call",
            "id": "fc_01order",
            "call_id": "call_order",
            "name": "read_order",
            "arguments": '{"order": 4711}',
            "status": "completed",
        },
        {
            "type": "custom_tool_call",
            "id": "ctc_02supplier",
            "call_id": "call_supplier",
            "name": "find_supplier",
            "input": "Blue",
        },
        {"type": "function_call_output", "call_id": "call_order", "output": ORDER},
        {"type": "custom_tool_call_output", "call_id": "call_supplier", "output": REFUSED},
        {"type": "message", "role": "developer", "content": "Answer in one sentence."},
        {"type": "message", "role": "user", "content": AGAIN},
        {"type": "reasoning", "id": "rs_02again", "summary": [], "encrypted_content": "gAAAAABp"},
        {
            "type": "web_search_call",
            "id": "ws_01blue",
            "status": "completed",
            "action": {"type": "search", "query": "Blue Ltd address"},
        },
        {
            "type": "local_shell_call",
            "id": "lsh_03again",
            "call_id": "call_again",
            "status": "completed",
            "action": {"type": "exec", "command": ["find-supplier", "Blue Ltd"], "env": {}},
        },
        {
            "type": "function_call_output",
            "call_id": "call_again",
            "output": [
                {"type": "input_text", "text": SUPPLIER},
                {
                    "type": "input_image",
                    "detail": "auto",
                    "image_url": "https://blue.example/door.png",
                },
            ],
        },
        {
            "type": "message",
            "id": "msg_02answer",
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": ANSWER, "annotations": []}],
        },
        {"type": "message", "role": "user", "content": LAST},
    ],
}

GEMINI: dict[str, Any] = {
    "systemInstruction": {"parts": [{"text": RULES}]},
    "generationConfig": {"thinkingConfig": {"includeThoughts": True}},
    "contents": [
        {
            "role": "user",
            "parts": [
                {"text": ASKED},
                {"inlineData": {"mimeType": "image/png", "data": PIXEL}},
            ],
        },
        {
            "role": "model",
            "parts": [
                {"text": THOUGHT, "thought": True},
                {"text": PLAN},
                {
                    "functionCall": {"name": "read_order", "args": {"order": 4711}},
                    "thoughtSignature": "CiQBjz1r",
                },
                {"functionCall": {"name": "find_supplier", "args": {"name": "Blue"}}},
            ],
        },
        {
            "role": "user",
            "parts": [
                {
                    "functionResponse": {
                        "name": "read_order",
                        "response": {"order": 4711, "total": "118.00"},
                    }
                },
                {"functionResponse": {"name": "find_supplier", "response": {"error": REFUSED}}},
            ],
        },
        {"role": "user", "parts": [{"text": AGAIN}]},
        {
            "role": "model",
            "parts": [
                {"executableCode": {"language": "PYTHON", "code": "print('Blue Ltd')"}},
                {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "Blue Ltd\n"}},
                {
                    "functionCall": {
                        "id": "fn-again",
                        "name": "find_supplier",
                        "args": {"name": "Blue Ltd"},
                    },
                    "thoughtSignature": "CiQBjz1s",
                },
            ],
        },
        {
            "role": "user",
            "parts": [
                {
                    "functionResponse": {
                        "id": "fn-again",
                        "name": "find_supplier",
                        "response": {"result": SUPPLIER},
                        "parts": [{"inlineData": {"mimeType": "image/png", "data": PIXEL}}],
                    }
                }
            ],
        },
        {"role": "model", "parts": [{"text": ANSWER, "thoughtSignature": "CiQBjz1t"}]},
        {"role": "user", "parts": [{"text": LAST}]},
    ],
}

BEDROCK: dict[str, Any] = {
    "modelId": "anthropic.claude-sonnet-4-5-v1:0",
    "system": [{"text": RULES}, {"cachePoint": {"type": "default"}}],
    "toolConfig": {
        "tools": [
            {
                "toolSpec": {
                    "name": name,
                    "description": "Looks one up.",
                    "inputSchema": {"json": {"type": "object", "properties": {}}},
                }
            }
            for name in ("read_order", "find_supplier")
        ]
    },
    "messages": [
        {
            "role": "user",
            "content": [
                {"text": ASKED},
                {"image": {"format": "png", "source": {"bytes": PIXEL}}},
            ],
        },
        {
            "role": "assistant",
            "content": [
                {"reasoningContent": {"reasoningText": {"text": THOUGHT, "signature": "EqQBCg"}}},
                {"text": PLAN},
                {
                    "toolUse": {
                        "toolUseId": "tooluse_order",
                        "name": "read_order",
                        "input": {"order": 4711},
                    }
                },
                {
                    "toolUse": {
                        "toolUseId": "tooluse_supplier",
                        "name": "find_supplier",
                        "input": {"name": "Blue"},
                    }
                },
            ],
        },
        {
            "role": "user",
            "content": [
                {
                    "toolResult": {
                        "toolUseId": "tooluse_order",
                        "content": [{"json": {"order": 4711, "total": "118.00"}}],
                        "status": "success",
                    }
                },
                {
                    "toolResult": {
                        "toolUseId": "tooluse_supplier",
                        "content": [{"text": REFUSED}],
                        "status": "error",
                    }
                },
                {"cachePoint": {"type": "default"}},
            ],
        },
        {
            "role": "assistant",
            "content": [
                {"reasoningContent": {"redactedContent": "EmwKAhgB"}},
                {
                    "toolUse": {
                        "toolUseId": "tooluse_again",
                        "name": "find_supplier",
                        "input": {"name": "Blue Ltd"},
                    }
                },
            ],
        },
        {
            "role": "user",
            "content": [
                {
                    "toolResult": {
                        "toolUseId": "tooluse_again",
                        "content": [
                            {"text": SUPPLIER},
                            {"image": {"format": "png", "source": {"bytes": PIXEL}}},
                        ],
                    }
                }
            ],
        },
        {"role": "assistant", "content": [{"text": ANSWER}]},
        {"role": "user", "content": [{"text": LAST}]},
    ],
}


def _chat(
    ids: tuple[str, str, str], beside: dict[str, Any], *, last: str = LAST, **members: Any
) -> dict[str, Any]:
    """The conversation as chat messages; `beside` stands on each reply with calls."""
    order, supplier, again = ids
    return {
        "model": "chat",
        **members,
        "messages": [
            {"role": "system", "content": RULES},
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": ASKED},
                    {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}},
                ],
            },
            {
                "role": "assistant",
                "content": PLAN,
                **beside,
                "tool_calls": [
                    _call(order, "read_order", '{"order": 4711}'),
                    _call(supplier, "find_supplier", '{"name": "Blue"}'),
                ],
            },
            {"role": "tool", "tool_call_id": order, "name": "read_order", "content": ORDER},
            {"role": "tool", "tool_call_id": supplier, "name": "find_supplier", "content": REFUSED},
            {
                "role": "assistant",
                "content": None,
                **beside,
                "tool_calls": [_call(again, "find_supplier", '{"name": "Blue Ltd"}')],
            },
            {"role": "tool", "tool_call_id": again, "name": "find_supplier", "content": SUPPLIER},
            {"role": "assistant", "content": ANSWER},
            {"role": "user", "content": last, "name": "olga"},
        ],
    }


def _call(id: str, name: str, arguments: str) -> dict[str, Any]:
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


PLAIN_IDS = ("call_order", "call_supplier", "call_again")
OPENAI_CHAT = _chat(PLAIN_IDS, {})
COMPATIBLE = _chat(PLAIN_IDS, {})
COMPATIBLE["messages"] = COMPATIBLE["messages"][1:]
DEEPSEEK = _chat(PLAIN_IDS, {"reasoning_content": THOUGHT})
KIMI = _chat(
    ("functions.read_order:0", "functions.find_supplier:1", "functions.find_supplier:2"),
    {"reasoning_content": THOUGHT},
)
MINIMAX = _chat(
    PLAIN_IDS,
    {"reasoning_details": [{"type": "reasoning.text", "id": "r-1", "text": THOUGHT}]},
    reasoning_split=True,
)
MISTRAL = _chat(("D681PevKs", "9cP2xLmQr", "aB3dE5fG7"), {})
del MISTRAL["messages"][-1]["name"]  # Mistral takes no member that it does not know
MISTRAL["messages"][2]["content"] = [
    {"type": "thinking", "thinking": [{"type": "text", "text": THOUGHT}], "closed": True},
    {"type": "text", "text": PLAN},
]

MINIMAX_MESSAGES: dict[str, Any] = {
    "model": "MiniMax-M2",
    "system": RULES,
    "messages": [
        {"role": "user", "content": ASKED},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": THOUGHT, "signature": "b3a1"},
                {
                    "type": "tool_use",
                    "id": "call_function_1",
                    "name": "read_order",
                    "input": {"order": 4711},
                },
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "call_function_1", "content": ORDER}
            ],
        },
        {"role": "user", "content": AGAIN},
    ],
}

NEUTRAL: dict[str, Any] = {
    "messages": [
        {"role": "user", "text": ASKED},
        {
            "role": "assistant",
            "parts": [
                {
                    "opaque": {
                        "kind": "reasoning",
                        "format": "anthropic",
                        "body": {"type": "thinking", "thinking": THOUGHT, "signature": "Eq"},
                    }
                },
                {"text": PLAN},
                {"call": {"id": "c_0", "name": "read_order", "arguments": {"order": 4711}}},
                {"call": {"id": "c_1", "name": "find_supplier", "arguments": {"name": "Blue"}}},
            ],
            "stop_reason": "tool_use",
        },
        {"role": "tool", "answers": "c_0", "name": "read_order", "text": ORDER},
        {
            "role": "tool",
            "answers": "c_1",
            "name": "find_supplier",
            "text": REFUSED,
            "is_error": True,
        },
        {
            "role": "assistant",
            "calls": [{"id": "c_2", "name": "find_supplier", "arguments": {"name": "Blue Ltd"}}],
        },
        {"role": "tool", "answers": "c_2", "name": "find_supplier", "text": SUPPLIER},
        {"role": "assistant", "text": ANSWER, "model": "m-1"},
        {"role": "user", "text": LAST},
    ]
}

CONVERSATIONS: dict[str, dict[str, Any]] = {
    "anthropic": ANTHROPIC,
    "bedrock": BEDROCK,
    "deepseek": DEEPSEEK,
    "gemini": GEMINI,
    "kimi": KIMI,
    "minimax": MINIMAX,
    "minimax-messages": MINIMAX_MESSAGES,
    "mistral": MISTRAL,
    "neutral": NEUTRAL,
    "openai-chat": OPENAI_CHAT,
    "openai-compatible": COMPATIBLE,
    "openai-responses": RESPONSES,
}
"""By profile: a request that its provider takes."""
