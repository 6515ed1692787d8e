"""A hook of MkDocs: pages link to files of the repository too, which are no pages of the site.

Such a link becomes the file's name in plain text: where the repository is published is nobody's business here.
"""

import re


def on_page_markdown(markdown, page, **_):
    depth = page.file.src_uri.count("/") + 1
    outside = "../" * depth
    return re.sub(rf"\[([^\]]+)\]\({re.escape(outside)}([^)]+)\)", named, markdown)


def named(link):
    text, path = link.group(1), link.group(2).split("#")[0].rstrip("/")
    return text if path in text or text.strip("`") in path else f"{text} (`{path}`)"
