#!/usr/bin/env python3
"""Writes what `transformers` renders for the templates and snippets below, to chats.json.

Needs `pip install transformers jinja2` (no torch). With SANGAM_DATA set, it also writes qwen3.json: hashes of
what the real Qwen 3 tokenizer and template give for our own texts and conversations.
"""
import datetime
import gzip
import json
import os
import pathlib

import transformers.utils.chat_template_utils as chat_utils

HERE = pathlib.Path(__file__).parent


class FixedTime(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return cls(2024, 7, 6, 15, 4, 5)


chat_utils.datetime = FixedTime

HEADERS = """{%- if custom is defined %}
    {%- set intro = custom %}
{%- endif %}
{{- bos_token }}
{% for message in messages %}
    {% set content = '<|head|>' + message['role'] + '<|/head|>\n\n' + message['content'] | trim + '<|done|>' %}
    {% if loop.first and intro is defined %}
        {% set content = intro ~ content %}
    {% endif %}
{{ content }}{% endfor %}
{% if add_generation_prompt %}{{ '<|head|>assistant<|/head|>\n\n' }}{% endif %}
"""

DATED_TOOLS = """{{- bos_token }}
{%- if not tools is defined %}
    {%- set tools = none %}
{%- endif %}
{%- if not date is defined %}
    {%- if strftime_now is defined %}
        {%- set date = strftime_now("%d %b %Y") %}
    {%- else %}
        {%- set date = "unknown" %}
    {%- endif %}
{%- endif %}

{#- The first message may be the system's. #}
{%- if messages[0]['role'] == 'system' %}
    {%- if messages[0]['content'] is string %}
        {%- set system = messages[0]['content']|trim %}
    {%- else %}
        {%- set system = messages[0]['content'][0]['text']|trim %}
    {%- endif %}
    {%- set messages = messages[1:] %}
{%- else %}
    {%- set system = "" %}
{%- endif %}
{{- "<|head|>system<|/head|>\n\n" }}
{%- if tools is not none %}
    {{- "Shell: yes\n" }}
{%- endif %}
{{- "Date: " + date + "\n\n" }}
{%- if tools is not none and not tools_in_user %}
    {%- for tool in tools %}
        {{- tool | tojson(indent=4) }}
        {{- "\n\n" }}
    {%- endfor %}
{%- endif %}
{{- system }}
{{- "<|done|>" }}
{%- if tools_in_user and not tools is none %}
    {%- if messages | length != 0 %}
        {%- set first_user = messages[0]['content']|trim %}
        {%- set messages = messages[1:] %}
    {%- else %}
        {{- raise_exception("There is no first user message to hold the tools!") }}
    {%- endif %}
    {{- '<|head|>user<|/head|>\n\n' -}}
    {%- for t in tools %}
        {{- t | tojson(indent=4) }}
        {{- "\n\n" }}
    {%- endfor %}
    {{- first_user + "<|done|>" }}
{%- endif %}
{%- for message in messages %}
    {%- if not (message.role == 'ipython' or message.role == 'tool' or 'tool_calls' in message) %}
        {{- '<|head|>' + message['role'] + '<|/head|>\n\n' }}
        {%- if message['content'] is string %}
            {{- message['content'] | trim }}
        {%- else %}
            {%- for part in message['content'] %}
                {%- if part['type'] == 'image' %}
                    {{- '<|image|>' }}
                {%- elif part['type'] == 'text' %}
                    {{- part['text'] | trim }}
                {%- endif %}
            {%- endfor %}
        {%- endif %}
        {{- '<|done|>' }}
    {%- elif 'tool_calls' in message %}
        {%- if not message.tool_calls|length == 1 %}
            {{- raise_exception("One call at a time, please") }}
        {%- endif %}
        {%- set call = message.tool_calls[0].function %}
        {{- '<|head|>assistant<|/head|>\n\n' -}}
        {%- if builtin_tools is defined and call.name in builtin_tools %}
            {{- "<|python|>" + call.name + ".call(" }}
            {%- for name, value in call.arguments | items %}
                {{- name + '="' + value + '"' }}
                {%- if not loop.last %}
                    {{- ", " }}
                {%- endif %}
            {%- endfor %}
            {{- ")" }}
        {%- else %}
            {{- '{"name": "' + call.name + '", ' }}
            {{- '"parameters": ' }}
            {{- call.arguments | tojson }}
            {{- "}" }}
        {%- endif %}
        {{- "<|done|>" }}
    {%- else %}
        {{- "<|head|>ipython<|/head|>\n\n" }}
        {%- if message.content is mapping or message.content is iterable %}
            {{- message.content | tojson }}
        {%- else %}
            {{- message.content }}
        {%- endif %}
        {{- "<|done|>" }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|head|>assistant<|/head|>\n\n' }}
{%- endif %}
"""

MARKED_TURNS = """{%- if tools %}
    {{- '<im>system\n' }}
    {%- if messages[0]['role'] == 'system' %}
        {{- messages[0]['content'] }}
    {%- else %}
        {{- 'You help.' }}
    {%- endif %}
    {{- "\n\n# Functions\n<functions>" }}
    {%- for tool in tools %}
        {{- "\n" }}
        {{- tool | tojson }}
    {%- endfor %}
    {{- "\n</functions></im>\n" }}
{%- else %}
    {%- if messages[0]['role'] == 'system' %}
        {{- '<im>system\n' + messages[0]['content'] + '</im>\n' }}
    {%- else %}
        {{- '<im>system\nYou help.</im>\n' }}
    {%- endif %}
{%- endif %}
{%- for message in messages %}
    {%- if (message.role == "user") or (message.role == "system" and not loop.first) or (message.role == "assistant" and not message.tool_calls) %}
        {{- '<im>' + message.role + '\n' + message.content + '</im>' + '\n' }}
    {%- elif message.role == "assistant" %}
        {{- '<im>' + message.role }}
        {%- if message.content %}
            {{- '\n' + message.content }}
        {%- endif %}
        {%- for tool_call in message.tool_calls %}
            {%- if tool_call.function is defined %}
                {%- set tool_call = tool_call.function %}
            {%- endif %}
            {{- '\n<call>\n{"name": "' }}
            {{- tool_call.name }}
            {{- '", "arguments": ' }}
            {{- tool_call.arguments | tojson }}
            {{- '}\n</call>' }}
        {%- endfor %}
        {{- '</im>\n' }}
    {%- elif message.role == "tool" %}
        {%- if (loop.index0 == 0) or (messages[loop.index0 - 1].role != "tool") %}
            {{- '<im>user' }}
        {%- endif %}
        {{- '\n<reply>\n' }}
        {{- message.content }}
        {{- '\n</reply>' }}
        {%- if loop.last or (messages[loop.index0 + 1].role != "tool") %}
            {{- '</im>\n' }}
        {%- endif %}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<im>assistant\n' }}
{%- endif %}
"""

REASONING = """{%- set ns = namespace(open=true, last=messages|length - 1) %}
{%- for message in messages[::-1] %}
    {%- set index = (messages|length - 1) - loop.index0 %}
    {%- if ns.open and message.role == "user" and not(message.content.startswith('<reply>') and message.content.endswith('</reply>')) %}
        {%- set ns.open = false %}
        {%- set ns.last = index %}
    {%- endif %}
{%- endfor %}
{%- for message in messages %}
    {%- if message.role == "assistant" %}
        {%- set content = message.content %}
        {%- set thought = '' %}
        {%- if message.reasoning_content is defined and message.reasoning_content is not none %}
            {%- set thought = message.reasoning_content %}
        {%- else %}
            {%- if '</think>' in message.content %}
                {%- set content = message.content.split('</think>')[-1].lstrip('\n') %}
                {%- set thought = message.content.split('</think>')[0].rstrip('\n').split('<think>')[-1].lstrip('\n') %}
            {%- endif %}
        {%- endif %}
        {%- if loop.index0 > ns.last and (loop.last or thought) %}
            {{- 'A:<think>\n' + thought.strip('\n') + '\n</think>\n\n' + content.lstrip('\n') }}
        {%- else %}
            {{- 'A:' + content }}
        {%- endif %}
    {%- else %}
        {{- message.role[0] | upper ~ ':' ~ message.content }}
    {%- endif %}
    {{- '|\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- 'A:' }}
    {%- if enable_thinking is defined and enable_thinking is false %}
        {{- '<think>\n\n</think>\n\n' }}
    {%- endif %}
{%- endif %}"""

INSTRUCTIONS = """{%- if messages[0]["role"] == "system" %}
    {%- set system_message = messages[0]["content"] %}
    {%- set loop_messages = messages[1:] %}
{%- else %}
    {%- set loop_messages = messages %}
{%- endif %}
{%- if not tools is defined %}
    {%- set tools = none %}
{%- endif %}
{%- set user_messages = loop_messages | selectattr("role", "equalto", "user") | list %}

{#- Users and assistants take turns, but for tool calls. #}
{%- set ns = namespace() %}
{%- set ns.index = 0 %}
{%- for message in loop_messages %}
    {%- if not (message.role == "tool" or message.role == "tool_results" or (message.tool_calls is defined and message.tool_calls is not none)) %}
        {%- if (message["role"] == "user") != (ns.index % 2 == 0) %}
            {{- raise_exception("Roles must take turns: user, assistant, user and so on") }}
        {%- endif %}
        {%- set ns.index = ns.index + 1 %}
    {%- endif %}
{%- endfor %}

{{- bos_token }}
{%- for message in loop_messages %}
    {%- if message["role"] == "user" %}
        {%- if tools is not none and (message == user_messages[-1]) %}
            {{- "[TOOLS] [" }}
            {%- for tool in tools %}
                {%- set tool = tool.function %}
                {{- '{"type": "function", "function": {' }}
                {%- for key, val in tool.items() if key != "return" %}
                    {%- if val is string %}
                        {{- '"' + key + '": "' + val + '"' }}
                    {%- else %}
                        {{- '"' + key + '": ' + val|tojson }}
                    {%- endif %}
                    {%- if not loop.last %}
                        {{- ", " }}
                    {%- endif %}
                {%- endfor %}
                {{- "}}" }}
                {%- if not loop.last %}
                    {{- ", " }}
                {%- else %}
                    {{- "]" }}
                {%- endif %}
            {%- endfor %}
            {{- "[/TOOLS]" }}
        {%- endif %}
        {%- if loop.last and system_message is defined %}
            {{- "[ASK] " + system_message + "\n\n" + message["content"] + "[/ASK]" }}
        {%- else %}
            {{- "[ASK] " + message["content"] + "[/ASK]" }}
        {%- endif %}
    {%- elif message.tool_calls is defined and message.tool_calls is not none %}
        {{- "[CALLS] [" }}
        {%- for tool_call in message.tool_calls %}
            {%- set out = tool_call.function|tojson %}
            {{- out[:-1] }}
            {%- if not tool_call.id is defined or tool_call.id|length != 9 %}
                {{- raise_exception("Tool call ids have nine characters") }}
            {%- endif %}
            {{- ', "id": "' + tool_call.id + '"}' }}
            {%- if not loop.last %}
                {{- ", " }}
            {%- else %}
                {{- "]" + eos_token }}
            {%- endif %}
        {%- endfor %}
    {%- elif message["role"] == "assistant" %}
        {%- generation %}
        {{- " " + message["content"]|trim + eos_token}}
        {%- endgeneration %}
    {%- elif message["role"] == "tool_results" or message["role"] == "tool" %}
        {%- if message.content is defined and message.content.content is defined %}
            {%- set content = message.content.content %}
        {%- else %}
            {%- set content = message.content %}
        {%- endif %}
        {{- '[RESULT] {"content": ' + content|string + ', "id": "' + message.tool_call_id + '"}[/RESULT]' }}
    {%- else %}
        {{- raise_exception("Only user and assistant roles are known, and a first system message") }}
    {%- endif %}
{%- endfor %}
"""

MACROS = """{%- macro part(item, mark="#") -%}
    {%- if item is string -%}{{ item }}
    {%- elif item.type == "text" -%}{{ item.text }}
    {%- else -%}{{ mark }}{{ item.type }}{{ mark }}
    {%- endif -%}
{%- endmacro -%}
{%- macro turn(message) -%}
{{ message.role | title }}: {% if message.content is string %}{{ part(message.content) }}{% else %}{% for p in message.content %}{{ part(p, mark="*") }}{% endfor %}{% endif %}
{%- endmacro -%}
{% for message in messages %}
{{ turn(message) }}
{% else %}
nobody spoke
{% endfor %}
{%- if add_generation_prompt -%}Assistant: {% endif -%}
"""

TEMPLATES = {"headers": HEADERS, "dated tools": DATED_TOOLS, "marked turns": MARKED_TURNS, "reasoning": REASONING,
             "instructions": INSTRUCTIONS, "macros": MACROS}

SYSTEM = {"role": "system", "content": " Be brief. "}
USER = {"role": "user", "content": "  What is 2+3? \u00e9 \U0001f600\n"}
ANSWER = {"role": "assistant", "content": "<think>\n2+3\n</think>\n\nFive."}
MORE = {"role": "user", "content": "And <b>'2*3'</b> & \"6\"?"}
CALL = {"role": "assistant", "content": "", "tool_calls": [
    {"id": "abc123def", "type": "function", "function": {"name": "add", "arguments": {"a": "2", "b": "\u00fc<3"}}}]}
RESULT = {"role": "tool", "content": "6", "tool_call_id": "abc123def"}
PARTS = {"role": "user", "content": [{"type": "text", "text": " look "}, {"type": "image"}, {"type": "text", "text": "here"}]}
TOOLS = [{"type": "function", "function": {"name": "add", "description": "Adds <two> numbers & \"more\"", "parameters": {
    "type": "object", "properties": {"a": {"type": "number", "default": 0.5}, "b": {"type": "number", "enum": [1, 2.0, None, True]}},
    "required": ["a"], "extra": {}, "none": []}, "return": {"type": "number"}}},
    {"type": "function", "function": {"name": "now", "description": "Zeit \u23f0", "parameters": {}}}]

CHATS = [[USER], [SYSTEM, USER], [SYSTEM, USER, ANSWER, MORE], [USER, ANSWER], [USER, CALL, RESULT, ANSWER, MORE],
         [SYSTEM, USER, CALL, RESULT], [USER, CALL, RESULT, RESULT], [PARTS], [ANSWER], [], [USER, USER],
         [USER, {"role": "assistant", "reasoning_content": "hm", "content": "ok"}], [{"role": "robot", "content": "beep"}]]
OPTIONS = [{}, {"add_generation_prompt": True}, {"tools": TOOLS}, {"tools": TOOLS, "add_generation_prompt": True, "tools_in_user": True},
           {"add_generation_prompt": True, "enable_thinking": False, "custom": "Intro. ", "builtin_tools": ["add"], "date": "today"}]

ITEMS = [{"name": "b", "n": 2, "tag": "x"}, {"name": "A", "n": 10}, {"name": "c", "n": -1, "tag": "y", "sub": {"k": [7, 8]}}]
VARIABLES = {"text": "Hello, W\u00f6rld of Tests", "empty": "", "number": 7, "real": 2.5, "yes": True, "no": False, "nothing": None,
             "items_list": ITEMS, "words": ["b", "A", "c", "a", "B"], "numbers": [3, 1, 2, 3], "mapping": {"k": 1, "items": "own", "z": [1, {"q": None}]},
             "lines": "one\ntwo\n\nthree", "nested": [[1, 2], [3, [4]]], "emoji": "a\U0001f600b", "quotes": "it's \"q\" \\ \n\t\x00\x7f\u00a0\u200b"}

SNIPPETS = r"""
{{ text }}|{{ number }}|{{ real }}|{{ yes }}|{{ no }}|{{ nothing }}|{{ missing }}
{{ items_list }}
{{ mapping }}|{{ nested }}|{{ (1,) }}|{{ () }}|{{ (1, 'a') }}|{{ [1.0, 1e20, 1e16, 123456789012345.0, 1e-5, 0.0001, -0.0, 1.5e300] }}
{{ [quotes] }}|{{ ["it's"] }}|{{ ['"'] }}|{{ [emoji, 'é'] }}
{{ quotes | tojson }}|{{ mapping | tojson }}|{{ items_list | tojson(indent=2) }}
{{ mapping | tojson(indent=4, sort_keys=True) }}|{{ '<é&>' | tojson }}|{{ emoji | tojson(ensure_ascii=True) }}|{{ [1, 2] | tojson(separators=(',', ':')) }}
{{ {} | tojson(indent=2) }}{{ [] | tojson(indent=2) }}{{ {'a': []} | tojson(indent=2) }}|{{ {1: 2, true: 3, none: 4, 1.5: 5} | tojson }}
{{ 1 + 2 * 3 - 4 / 2 }}|{{ 7 // 2 }}|{{ -7 // 2 }}|{{ 7 % 3 }}|{{ -7 % 3 }}|{{ 7 % -3 }}|{{ 2 ** 10 }}|{{ 2 ** -1 }}|{{ 7.5 // 2 }}|{{ -7.5 % 2 }}
{{ 2 ** 3 ** 2 }}|{{ -2 ** 2 }}|{{ (1 + 2) * 3 }}|{{ 10 - 3 - 2 }}|{{ 1_000 + 0x1F + 0b101 + 0o17 }}|{{ 1e3 }}|{{ 1.5E-3 }}
{{ +3 }}|{{ -number }}|{{ - -3 }}|{{ +-2.5 }}
{{ 'a' ~ 1 ~ none ~ 2.0 ~ missing ~ true }}|{{ 'a' + 'b' 'c' }}|{{ 'ab' * 3 }}|{{ 2 * 'x' }}|{{ [1] * 3 }}|{{ [1] + [2] }}|{{ (1,) + (2,) }}
{{ 1 < 2 < 3 }}|{{ 1 < 3 < 2 }}|{{ 1 == 1.0 }}|{{ 'a' < 'b' }}|{{ [1, 2] < [1, 3] }}|{{ 1 != '1' }}|{{ true == 1 }}|{{ 2 >= 2 > 1 <= 1 }}
{{ 'ell' in text }}|{{ 'k' in mapping }}|{{ 3 in numbers }}|{{ 9 not in numbers }}|{{ not 3 in numbers }}|{{ 'x' in missing }}|{{ '' in '' }}
{{ yes and no }}|{{ no or 'x' }}|{{ not yes }}|{{ '' or 0 or none }}|{{ 1 and 'y' }}|{{ not not 1 }}|{{ missing or 'd' }}
{{ 'a' if yes else 'b' }}|{{ 'a' if no else 'b' }}|{{ 'a' if no }}|{{ ('a' if no else 'b' if no else 'c') }}|{{ 1 if 0 else 2 if 0 else 3 }}
{{ text[0] }}|{{ text[-1] }}|{{ text[1:4] }}|{{ text[::-1] }}|{{ text[-3:] }}|{{ text[:-3] }}|{{ text[::2] }}|{{ text[4:1:-1] }}|{{ text[100:] }}|{{ emoji[1] }}
{{ numbers[0] }}|{{ numbers[-1] }}|{{ numbers[::-1] }}|{{ numbers[1:] }}|{{ numbers[:-1] }}|{{ numbers[-2::-1] }}|{{ numbers[5] }}|{{ numbers[5] is defined }}|{{ (1, 2, 3)[1:] }}
{{ numbers[:99] }}|{{ numbers[-99:2] }}|{{ numbers[3:0:-2] }}|{{ numbers[none:2] }}|{{ text[:none] }}
{{ mapping.k }}|{{ mapping['k'] }}|{{ mapping.items is callable }}|{{ mapping['items'] }}|{{ mapping.z[1].q }}|{{ mapping.nope }}|{{ mapping['nope'] is undefined }}
{{ mapping.get('k') }}|{{ mapping.get('nope') }}|{{ mapping.get('nope', 5) }}|{{ mapping.keys() | list }}|{{ mapping.values() | list }}|{{ mapping.items() | list }}
{{ nested.0.1 }}|{{ nested[1][1][0] }}|{{ items_list[2].sub.k.1 }}
{{ text.upper() }}|{{ text.lower() }}|{{ text.title() }}|{{ 'they\'re bill\'s' | title }}|{{ "they're".title() }}|{{ 'hELLO wORLD'.capitalize() }}|{{ 'straße ǆ ΑΣ'.upper() }}|{{ 'ΑΣ ΑΣΑ'.lower() }}
{{ '  x y '.strip() }}|{{ '  x '.lstrip() }}|{{ '  x '.rstrip() }}|{{ 'xxaxx'.strip('x') }}|{{ 'abcba'.lstrip('ab') }}|{{ 'abcba'.rstrip('ab') }}|{{ '\n\nq\n'.strip('\n') }}
{{ 'a,b,,c'.split(',') }}|{{ ' a  b c '.split() }}|{{ 'a,b,c'.split(',', 1) }}|{{ 'a b c'.split(None, 1) }}|{{ 'a,b,c'.rsplit(',', 1) }}|{{ ''.split(',') }}|{{ ''.split() }}|{{ 'a--b'.split('--') }}
{{ text.startswith('Hell') }}|{{ text.endswith('sts') }}|{{ text.startswith(('x', 'H')) }}|{{ 'abc'.find('c') }}|{{ 'abc'.find('z') }}|{{ 'éabé'.rfind('é') }}|{{ 'éab'.index('b') }}|{{ 'aaa'.count('a') }}
{{ text.replace('l', 'L') }}|{{ text.replace('l', 'L', 1) }}|{{ 'ab'.replace('', '-') }}|{{ 'aé'.replace('', '-', 2) }}|{{ 'a.b'.partition('.') }}|{{ ', '.join(['a', 'b']) }}
{{ 'prefix-x'.removeprefix('prefix-') }}|{{ 'x.txt'.removesuffix('.txt') }}|{{ '12'.isdigit() }}|{{ '1a'.isdigit() }}|{{ 'ab'.isalpha() }}|{{ 'a1'.isalnum() }}|{{ ' \t'.isspace() }}|{{ 'AB'.isupper() }}|{{ 'aB'.islower() }}
{{ lines.splitlines() }}|{{ 'a\r\nb\rc\x0bd'.splitlines() }}|{{ 'a\n'.splitlines(true) }}
{{ '  x ' | trim }}|{{ 'xxaxx' | trim('x') }}|{{ text | length }}|{{ emoji | length }}|{{ mapping | length }}|{{ numbers | count }}|{{ missing | length }}
{{ missing | default('d') }}|{{ '' | default('d') }}|{{ '' | default('d', true) }}|{{ none | default('d') }}|{{ missing | d('e') }}|{{ mapping.nope | default(3) }}|{{ none | default('d', boolean=true) }}
{{ words | join(', ') }}|{{ numbers | join }}|{{ items_list | join(', ', attribute='name') }}|{{ 'abc' | join('-') }}|{{ [1, none, 'x'] | join('|') }}
{{ text | upper }}|{{ text | lower }}|{{ 'hello big-world (of x)' | title }}|{{ 'hELLO' | capitalize }}|{{ text | replace('l', 'L') }}|{{ 'aaa' | replace('a', 'b', 2) }}|{{ 5 | string ~ 'x' }}|{{ none | string }}
{{ words | first }}|{{ words | last }}|{{ '' | first }}|{{ [] | last }}|{{ 'xyz' | first }}|{{ words | reverse | list }}|{{ 'abc' | reverse }}
{{ words | sort }}|{{ words | sort(reverse=true) }}|{{ words | sort(case_sensitive=true) }}|{{ numbers | sort }}|{{ items_list | sort(attribute='n') | map(attribute='name') | list }}
{{ words | unique | list }}|{{ numbers | unique | list }}|{{ words | unique(case_sensitive=true) | list }}|{{ words | min }}|{{ numbers | max }}|{{ numbers | sum }}|{{ items_list | sum(attribute='n') }}
{{ items_list | map(attribute='name') | list }}|{{ words | map('upper') | list }}|{{ items_list | map(attribute='tag', default='-') | list }}|{{ [items_list[2]] | map(attribute='sub.k.0') | list }}|{{ words | map('replace', 'a', 'z') | list }}
{{ items_list | selectattr('tag') | map(attribute='name') | list }}|{{ items_list | selectattr('n', 'gt', 1) | list | length }}|{{ items_list | rejectattr('tag', 'defined') | map(attribute='name') | list }}|{{ items_list | selectattr('name', 'equalto', 'b') | list | length }}|{{ items_list | selectattr('name', 'in', ['A', 'c']) | map(attribute='n') | list }}
{{ numbers | select('odd') | list }}|{{ numbers | reject('odd') | list }}|{{ [0, 1, '', 'x'] | select | list }}|{{ [0, 1] | reject | list }}|{{ numbers | select('>', 1) | list }}|{{ numbers | select('divisibleby', 3) | list }}
{{ mapping | items | list }}|{{ mapping | list }}|{{ 'ab' | list }}|{{ missing | list }}|{{ mapping | dictsort | first }}|{{ {'b': 1, 'a': 2} | dictsort(by='value') }}|{{ {'b': 1, 'A': 2} | dictsort }}|{{ missing | items | list }}
{{ '42' | int }}|{{ '4.9' | int }}|{{ 'x' | int }}|{{ 'x' | int(7) }}|{{ 3.9 | int }}|{{ -3.9 | int }}|{{ '0x1A' | int(0, 16) }}|{{ ' 5 ' | int }}|{{ true | int }}|{{ none | int }}|{{ '1.5' | float }}|{{ 'x' | float }}|{{ 2 | float }}
{{ -5 | abs }}|{{ (-5) | abs }}|{{ (-2.5) | abs }}|{{ 2.5 | round }}|{{ 3.5 | round }}|{{ 2.675 | round(2) }}|{{ 2.1 | round(method='ceil') }}|{{ 2.9 | round(0, 'floor') }}|{{ 7 | round }}|{{ 1234.5 | round(-2) }}|{{ 42.55 | round(1) }}
{{ lines | indent }}|{{ lines | indent(2, true) }}|{{ lines | indent(2, blank=true) }}|{{ lines | indent('> ') }}|{{ 'x' | indent }}|{{ 'a\n' | indent }}|{{ text | safe }}|{{ text | wordcount }}
{{ [1, 2, 3, 4, 5] | batch(2) | list }}|{{ [1, 2, 3] | batch(2, 0) | list }}
{{ missing is defined }}{{ text is defined }}{{ missing is undefined }}{{ nothing is none }}{{ nothing is not none }}{{ text is string }}{{ 1 is string }}{{ mapping is mapping }}{{ words is mapping }}
{{ words is iterable }}{{ text is iterable }}{{ 1 is iterable }}{{ mapping is iterable }}{{ missing is iterable }}{{ words is sequence }}{{ text is sequence }}{{ mapping is sequence }}{{ 1 is sequence }}{{ (1, 2) is sequence }}
{{ 1 is number }}{{ 1.5 is number }}{{ true is number }}{{ '1' is number }}{{ 1 is integer }}{{ true is integer }}{{ 1.0 is float }}{{ true is boolean }}{{ 1 is boolean }}{{ true is true }}{{ 1 is true }}{{ false is false }}{{ 0 is false }}
{{ 3 is odd }}{{ 4 is even }}{{ 9 is divisibleby 3 }}{{ 9 is divisibleby(2) }}{{ 1 is eq 1 }}{{ 1 is equalto 2 }}{{ 1 is ne 2 }}{{ 3 is gt 2 }}{{ 3 is lt 2 }}{{ 3 is ge 3 }}{{ 3 is le 2 }}{{ 1 is in [1, 2] }}{{ 5 is not in [1, 2] }}{{ none is sameas none }}
{{ 'ab' is lower }}{{ 'AB' is upper }}{{ 'aB' is lower }}{{ range is callable }}{{ 1 is callable }}{{ 'upper' is filter }}{{ 'nope' is filter }}{{ 'odd' is test }}
{{ missing is defined and missing.x }}|{{ missing is not defined or missing.x }}|{{ (missing is defined) == false }}|{{ 1 is odd and 2 is even }}|{{ 3 if 1 is odd else 4 }}
{% set x = 1 %}{% for i in [1, 2] %}{% set x = x + i %}{{ x }}{% endfor %}{{ x }}
{% set ns = namespace(x=1, y='a') %}{% for i in [1, 2] %}{% set ns.x = ns.x + i %}{% endfor %}{{ ns.x }}{{ ns.y }}{{ ns.nope is defined }}{% set ns.z = 5 %}{{ ns.z }}{{ ns['x'] }}
{% set a, b = 1, 2 %}{{ a }}{{ b }}{% set c = 1, 2 %}{{ c }}{% set (d, e) = [3, 4] %}{{ d }}{{ e }}
{% set block %}[{{ text }}]{% set inner = 1 %}{% endset %}{{ block }}{{ inner is defined }}{% set up | upper | replace('E', '3') %}hello{% endset %}{{ up }}
{% if no %}a{% elif yes %}b{% set v = 1 %}{% else %}c{% endif %}{{ v }}{% if '' %}{% else %}e{% endif %}
{% for i in numbers %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ loop.depth }}{{ loop.previtem }}{{ loop.nextitem }};{% endfor %}
{% for i in [] %}x{% else %}none{% endfor %}|{% for i in missing %}x{% else %}none{% endfor %}|{% for i in [1, 2, 3, 4] if i is even %}{{ i }}{{ loop.index }}{{ loop.last }}{% else %}e{% endfor %}|{% for i in [1] if i > 5 %}x{% else %}no{% endfor %}
{% for k, v in mapping.items() %}{{ k }}={{ v }};{% endfor %}{% for k in mapping %}{{ k }}{% endfor %}{% for a, (b, c) in [(1, (2, 3))] %}{{ a }}{{ b }}{{ c }}{% endfor %}{% for c in 'aé' %}{{ c }}.{% endfor %}
{% for i in range(10) %}{% if i == 3 %}{% continue %}{% endif %}{% if i == 6 %}{% break %}{% endif %}{{ i }}{% else %}never{% endfor %}
{% for i in [1, 2] %}{% for j in [1, 2] %}{{ loop.depth }}{{ loop.depth0 }}{{ i }}{{ j }} {% if j == 1 and i == 1 %}{% break %}{% endif %}{% endfor %}{{ loop.index }};{% endfor %}{{ loop is defined }}
{% for i in range(3) %}{{ loop.cycle('a', 'b') }}{% endfor %}|{{ range(5) | list }}|{{ range(2, 8, 3) | list }}|{{ range(5, 0, -2) | list }}|{{ range(0) | list }}
{% macro m(a, b=2, c=a) %}{{ a }}{{ b }}{{ c }}{% endmacro %}{{ m(1) }}|{{ m(1, 3) }}|{{ m(b=5, a=4) }}|{{ m() }}|{{ m(1, *[7, 8]) }}|{{ m(**{'a': 9}) }}|{{ m('x') | upper }}
{% set outer = 1 %}{% macro m() %}{{ outer }}{% set outer = 2 %}{{ outer }}{% endmacro %}{{ m() }}{{ outer }}{% set outer = 3 %}{{ m() }}
{% macro fact(n) %}{% if n <= 1 %}1{% else %}{{ n * (fact(n - 1) | int) }}{% endif %}{% endmacro %}{{ fact(6) }}
{% macro wrap(t) %}<{{ t }}>{{ caller() }}</{{ t }}>{% endmacro %}{% call wrap('b') %}in {{ text }}{% endcall %}|{% macro each(l) %}{% for i in l %}{{ caller(i) }}{% endfor %}{% endmacro %}{% call(i) each([1, 2]) %}[{{ i }}]{% endcall %}
{% filter upper %}shout {{ text }}{% endfilter %}|{% with a = 1, b = 2 %}{{ a }}{{ b }}{% set z = 1 %}{% endwith %}{{ a is defined }}{{ z is defined }}
{% generation %}gen {% set g = 1 %}{{ g }}{% endgeneration %}{{ g is defined }}
{% raw %}{{ not }} {% this %} {# nor #}{% endraw %}|{#- comment -#}  x  {# c #}|{{ '{{' }}{{ "%}" }}{{ '#}' }}
{{ {'a': {'b': 1}} }}{{ {'a': 1}.a }}{{ {'a': [1, {'c': 2}]}['a'][1]['c'] }}{{ [[1, 2], [3]][0][1] }}
{{ 'a\tb\\n\'\"\x41\u00e9\U0001F600\101\q\0' }}|{{ "a
b" }}
{{ strftime_now('%Y-%m-%d %H:%M:%S %d %b %B %A') }}
{{ dict(a=1, b='x') }}|{{ dict({'k': 1}, z=2) }}|{{ dict() }}
{{ text.split(' ')[0].upper().lower() | length + 1 }}|{{ (text | upper)[0] }}|{{ text | upper | lower | length > 3 }}|{{ -number | abs }}|{{ (number * 2) | string | length }}
{{ 'x' if missing else 'y' }}|{{ missing == missing2 }}|{{ missing == none }}|{{ none == false }}|{{ [] == () }}|{{ {'a': 1} == {'a': 1.0} }}|{{ 'a' in ['a'] and 'b' not in ['a'] }}
{{ [1, 2, 3,] }}{{ (1, 2,) }}{{ {'a': 1,} }}{{ [] }}{{ {} }}{{ [none, true] }}
{{ numbers.index(2) }}{{ numbers.count(3) }}{{ (1, 2, 1).count(1) }}{{ mapping.copy() == mapping }}
{{ 1 }}{{ 2 -}}   {{ 3 }}   {{- 4 }}
{{ nothing.x is defined }}|{{ number.x is defined }}|{{ text.nope is defined }}|{{ text['nope'] is defined }}|{{ text['upper']() }}
{{ not yes or yes }}{{ not (yes or yes) }}{{ 1 + 1 == 2 and 2 * 2 == 4 }}{{ 'a' ~ 'b' == 'ab' }}{{ 1 in [1] == true }}{{ 2 * 3 in [6] }}
{{ true | string | lower }}{{ True }}{{ False }}{{ None }}{{ none is none }}
{{ undefined_function is defined }}{{ messages }}{{ tools }}{{ documents }}{{ add_generation_prompt }}
{{ 0.1 + 0.2 }}|{{ 100 / 3 }}|{{ 1e308 * 10 }}|{{ 5 / 5 }}|{{ 10.0 // 3 }}|{{ 2.0 ** 3 }}|{{ 1e22 }}|{{ 1e15 | int }}|{{ 123456789.123 }}
""".strip("\n").split("\n")
# One snippet holds a line end within a string; the split above is undone for it.
at = next(i for i, s in enumerate(SNIPPETS) if s.endswith('{{ "a'))
SNIPPETS[at:at + 2] = ["\n".join(SNIPPETS[at:at + 2])]

SPACING = ["a\n{% if yes %}\nb\n{% endif %}\nc\n", "  {% if yes %}  \n  b\n  {% endif %}  \nc", "a {%- if yes -%} b {%- endif -%} c",
           "a\n\n  {%- if yes -%}\n\n  b\n  {%- endif %}\n\nc\n\n", "  {%+ if yes %} b {% endif +%}\n c", "{{ 1 }}\n{{ 2 }}\n", "  {{ 1 }}\n  {{- 2 }}\n",
           "a\n  {# c #}\nb\n  {#- c -#}\nd", "a\r\nb\rc{% if yes %}\r\nd{% endif %}\r\n", "{% for i in [1, 2] %}\n  {{ i }}\n{% endfor %}\nend",
           "{% for i in [1, 2] -%}\n  {{ i }}\n{%- endfor %}", "x  {% raw %}\n {{ a }} {% endraw %}\n y", "x {%- raw -%}\n {{ a }} {%- endraw -%}\n y",
           "\t{% set x = 1 %}\n\t{{ x }}", "{{ 1 -}}\n\n  {{ 2 }}", "{%- set x = 1 -%}\n\n", "\n\n", "", "text only\n", "a{#+ c +#}\nb", "   {%- set a = 1 %}   {% set b = 2 %}   \n  x",
           "{% if yes %}{# c #}\n  {% endif %}\n x", "a \u00a0\u2003{%- if yes %}b{% endif -%}\u2003\n c"]

ERRORS = ["{{ missing.x }}", "{{ missing + 1 }}", "{{ 1 + 'a' }}", "{{ 'a' + 1 }}", "{{ [1] + (2,) }}", "{{ missing() }}", "{{ number() }}", "{{ words.append(1) }}",
          "{{ mapping.update({}) }}", "{{ mapping.pop('k') }}", "{{ 1 // 0 }}", "{{ 1 % 0 }}", "{{ 1 / 0 }}", "{{ 1 < 'a' }}", "{{ none < 1 }}", "{{ 1 in 5 }}",
          "{{ 1 in 'a' }}", "{{ missing in 'a' }}", "{{ raise_exception('no ' ~ number) }}", "{% for i in 5 %}{% endfor %}", "{% for a, b in [1] %}{% endfor %}",
          "{% set mapping.k = 1 %}", "{% set nope.k = 1 %}", "{{ words | nope }}", "{{ words is nope }}", "{% nope %}", "{% if yes %}", "{% endif %}", "{{ 'a", "{{ 1",
          "{{ 1 + }}", "{{ [1, }}", "{{ (1 }}", "{{ 1) }}", "{% for x in %}{% endfor %}", "{% set = 1 %}", "{# open", "{% raw %} open", "{{ a b }}", "{{ 1 is odd is even }}",
          "{% macro m(a) %}{% endmacro %}{{ m(1, 2) }}", "{% macro m(a) %}{% endmacro %}{{ m(z=1) }}", "{% macro m(a=1, b) %}{% endmacro %}", "{{ missing | tojson }}",
          "{{ range | tojson }}", "{{ nothing | length }}", "{{ 5 | length }}", "{{ text.split('') }}", "{{ 'abc'.index('z') }}", "{{ numbers[::0] }}", "{{ range(200000) | list }}",
          "{{ range(1, 2, 0) | list }}", "{{ {[1]: 2} }}", "{{ [1, 'a'] | sort }}", "{{ text.startswith(1) }}", "{{ ', '.join([1]) }}", "{% break %}", "{% set true = 1 %}", "{{ text | items | list }}",
          "{{ missing.x.y is defined }}", "{{ -missing }}", "{{ -'a' }}", "{% else %}", "{% set a, b = 1 %}", "{{ x y }}", "{{ $ }}", "{{ words | selectattr | list }}", "{{ none | abs }}", "{{ '\\x4' }}"]


def render(template, messages, **options):
    return chat_utils.render_jinja_template([messages], chat_template=template, **options)[0][0]


def outcome(template, messages, options):
    try:
        return {"text": render(template, messages, **options)}
    except Exception as error:  # noqa: BLE001: whatever the library raises is its answer
        return {"error": str(error)}


def chat_case(name, chat, option):
    given = {"bos_token": "<bos>", "eos_token": "<eos>", **OPTIONS[option]}
    return {"template": name, "chat": chat, "option": option, **outcome(TEMPLATES[name], CHATS[chat], given)}


def fnv(data):
    value = 0xCBF29CE484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001B3 % 2**64
    return f"{value:016x}"


def write_real(folder):
    from tokenizers import Tokenizer

    import make_tokenizers as small

    tokenizer = Tokenizer.from_str(gzip.open(folder / "tokenizer.json.gz", "rt", encoding="utf-8").read())
    template = json.loads((folder / "tokenizer_config.json").read_text())["chat_template"]
    texts = small.TEXTS + small.ADDED_TEXTS["qwen2"] + small.random_texts(60, small.SEED + 5)
    encode = [{"text": t, "ids": fnv(json.dumps(tokenizer.encode(t).ids, separators=(",", ":")).encode())} for t in texts]
    chats = []
    for chat, messages in enumerate(CHATS):
        for option, options in enumerate(OPTIONS):
            result = outcome(template, messages, options)
            hashed = {"error": True} if "error" in result else {"text": fnv(result["text"].encode())}
            chats.append({"chat": chat, "option": option, **hashed})
    (HERE / "qwen3.json").write_text(json.dumps({"encode": encode, "chats": chats}, ensure_ascii=False, separators=(",", ":")))


def main():
    chats = [chat_case(name, chat, option) for name in TEMPLATES for chat in range(len(CHATS))
             for option in range(len(OPTIONS)) if chat < 6 or option in (1, chat % len(OPTIONS))]
    snippets = [{"source": s, **outcome(s, [], VARIABLES)} for s in SNIPPETS + SPACING + ERRORS]
    wrong = [s for s in snippets if ("error" in s) != (s["source"] in ERRORS)]
    assert not wrong, wrong
    (HERE / "chats.json").write_text(json.dumps(
        {"templates": TEMPLATES, "chats": CHATS, "options": OPTIONS, "variables": VARIABLES, "conversations": chats, "snippets": snippets},
        ensure_ascii=False, separators=(",", ":")))
    if "SANGAM_DATA" in os.environ:
        write_real(pathlib.Path(os.environ["SANGAM_DATA"]) / "tokenizers/qwen3")


if __name__ == "__main__":
    main()
