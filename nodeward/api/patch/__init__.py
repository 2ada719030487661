"""JSON patch, merge patch and strategic merge patch. Called by `apiserver/verbs/patch.py`.

Pure: plain JSON trees come in, a new tree goes out that shares with the old one what did not change. Neither the
document nor the patch is changed.
"""
