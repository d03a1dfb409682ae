"""A folder with two paths, as in a sandbox where the clone is also at the path of the user's checkout."""


def follow_alias(path: str, alias: str, folder: str) -> str:
    """The path below `folder` of a file that is named by its path below `alias`. Other paths stay as they are."""
    if alias and folder and (path == alias or path.startswith(alias.rstrip("/") + "/")):
        return folder.rstrip("/") + path[len(alias.rstrip("/")) :]
    return path
