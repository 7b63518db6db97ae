"""What the package index shows: the README with links that work there, and project addresses.

On the index a relative link leads nowhere. With the address of the repository, set as
`repository` in `pyproject.toml`, each becomes a link to the file of this version. Without one,
the words of a link stay and the link goes, a picture becomes its description, and where a link was
all that a sentence had, the command is named that prints the page: it comes with the package.
"""

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

_LINK = re.compile(r"(?P<picture>!?)\[(?P<words>[^\]\n]*)\]\((?P<target>[^()\s]+)\)")
_PAGE = re.compile(r"docs/(?:tutorial|how-to|reference|explanation|case-studies)/([\w-]+)\.md")
_LAST_LINE = "\nThe pages named here come with the package: `surecall docs` lists them.\n"
_FENCE = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)


class IndexPage(MetadataHookInterface):
    """Fills in the description and the addresses of the project."""

    PLUGIN_NAME = "custom"

    def update(self, metadata: dict[str, Any]) -> None:
        """Set what depends on the address of the repository."""
        repository: str = self.config.get("repository", "").rstrip("/")
        text = (Path(self.root) / "README.md").read_text("utf-8")
        page = rewrite_links(text, repository, f"v{metadata['version']}")
        metadata["readme"] = {"content-type": "text/markdown", "text": page}
        if repository:
            metadata["urls"] = {
                "Repository": repository,
                "Documentation": f"{repository}/blob/main/docs/index.md",
                "Changelog": f"{repository}/blob/main/CHANGELOG.md",
                "Issues": f"{repository}/issues",
                "Security": f"{repository}/blob/main/SECURITY.md",
            }


def rewrite_links(text: str, repository: str, version: str) -> str:
    """Return a page whose relative links are absolute, or plain words where nothing is known."""

    def rewrite(match: re.Match[str]) -> str:
        picture, words, target = match.group("picture", "words", "target")
        if re.match(r"[a-z]+:", target):
            return match[0]
        if not repository:
            return f"*{words}*" if picture else name_page(match)
        kind = "raw" if picture else "blob"
        return f"{picture}[{words}]({repository}/{kind}/{version}/{target})"

    parts = _FENCE.split(text)
    page = "".join(part if part.startswith("```") else _LINK.sub(rewrite, part) for part in parts)
    return page if repository else page + _LAST_LINE


def name_page(link: re.Match[str]) -> str:
    """Return the words of a link, or how to print its page where they say nothing by themselves."""
    page = _PAGE.match(link["target"])
    before, after = link.string[: link.start()], link.string[link.end() :]
    if page and before.endswith((". ", ".\n")) and after.startswith("\n"):
        return f"{link['words']}: `surecall docs {page[1]}`"
    return link["words"]
