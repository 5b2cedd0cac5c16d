;;; mercury-tests.el --- Suggestions and next edits in a real Emacs -*- lexical-binding: t; -*-

;; The configuration under test is loaded first: it is the one in the README.  `mercury-scene' comes from the
;; environment: the text of a file, what is typed at its end, and, where the engine copies, what has to follow.

;;; Code:

(require 'ert)
(require 'cl-lib)
(require 'json)
(require 'project)
(require 'python)

(defvar mercury-seconds 60)
(defvar mercury-folder (getenv "MERCURY_TEST_FOLDER"))
(defvar mercury-scenes (json-parse-string (getenv "MERCURY_TEST_SCENES") :object-type 'alist))
(defvar mercury-copies (equal (getenv "MERCURY_ENGINE_MODEL") "fake"))

(defun mercury-scene (&rest path)
  (let ((value mercury-scenes))
    (dolist (name path value)
      (setq value (alist-get name value)))))

(defmacro mercury-until (what &rest body)
  "What BODY says once it is true, while processes have their turn; WHAT is waited for."
  (declare (indent 1))
  `(let ((deadline (+ (float-time) mercury-seconds)) value)
     (while (not (setq value (progn ,@body)))
       (when (> (float-time) deadline)
         (error "Waited %s s for %s\n%s" mercury-seconds ,what (buffer-string)))
       (accept-process-output nil 0.02))
     value))

(defun mercury-visit (text)
  "A buffer of a Python file with TEXT, with point at its end."
  (let ((file (expand-file-name "shop.py" mercury-folder)))
    (with-temp-file file (insert text))
    (find-file file)
    (buffer-enable-undo)
    (goto-char (point-max))))

(defun mercury-type (text)
  "Type TEXT, a key at a time."
  (seq-do (lambda (key) (let ((last-command-event key)) (call-interactively #'self-insert-command))) text))

(defun mercury-rename ()
  "Rename where `area' is defined, as a user would."
  (goto-char (point-min))
  (search-forward "area")
  (delete-char -4)
  (mercury-type "surface")
  (should (equal (buffer-string) (mercury-scene 'renamed)))
  (undo-boundary))

;;; Eglot

(defun mercury-eglot (text)
  "A buffer with TEXT in which Eglot has a server of ours whose engine is ready."
  (mercury-visit text)
  (require 'eglot)
  (apply #'eglot--connect (eglot--guess-contact))
  (mercury-eglot-ready))

(defun mercury-eglot-ready ()
  (mercury-until "the engine"
    (when-let* ((server (eglot-current-server)))
      (equal "ready" (plist-get (jsonrpc-request server :mercury/status eglot--{}) :state)))))

(defun mercury-capf ()
  "What Eglot offers at point: start, end, candidates, and what to do after one was inserted."
  (pcase-let* ((`(,start ,end ,table . ,more) (eglot-completion-at-point))
               (typed (buffer-substring-no-properties start end)))
    (list start end (all-completions typed table) more)))

(defun mercury-offered ()
  "Our one candidate, waited for."
  (mercury-until "a candidate" (nth 2 (mercury-capf)))
  (pcase-let ((`(,_ ,_ ,candidates ,more) (mercury-capf)))
    (should (equal 1 (length candidates)))
    (should (equal " mercury" (substring-no-properties (funcall (plist-get more :annotation-function) (car candidates)))))
    (car candidates)))

(defun mercury-take ()
  "Complete at point, as `completion-at-point' does with a sole candidate."
  (let ((completion-at-point-functions '(eglot-completion-at-point)))
    (undo-boundary)
    (completion-at-point)
    (undo-boundary)))

(ert-deftest mercury-eglot-offers-a-suggestion-as-a-candidate ()
  (mercury-eglot (mercury-scene 'shop 'text))
  (mercury-type (mercury-scene 'shop 'typed))
  (let ((offered (substring-no-properties (mercury-offered))))
    (should (string-prefix-p "it" offered))
    (when mercury-copies
      (should (equal offered (concat "it" (mercury-scene 'shop 'rest)))))))

(ert-deftest mercury-eglot-inserts-exactly-what-was-shown ()
  (mercury-eglot (mercury-scene 'shop 'text))
  (mercury-type (mercury-scene 'shop 'typed))
  (let ((before (string-remove-suffix "it" (buffer-string)))
        (offered (substring-no-properties (mercury-offered))))
    (mercury-take)
    (should (equal (buffer-string) (concat before offered)))))

(ert-deftest mercury-eglot-undoes-a-suggestion-in-one-step ()
  (mercury-eglot (mercury-scene 'shop 'text))
  (mercury-type (mercury-scene 'shop 'typed))
  (let ((before (buffer-string)))
    (mercury-offered)
    (mercury-take)
    (should-not (equal (buffer-string) before))
    (undo)
    (should (equal (buffer-string) before))))

(ert-deftest mercury-eglot-carries-a-rename-on-in-one-undo-step ()
  (mercury-eglot (mercury-scene 'shapes))
  (mercury-rename)
  (call-interactively (keymap-lookup eglot-mode-map "C-c m"))
  (undo-boundary)
  (should (equal (buffer-string) (mercury-scene 'carried)))
  (undo)
  (should (equal (buffer-string) (mercury-scene 'renamed))))

(ert-deftest mercury-eglot-says-when-nothing-follows ()
  (mercury-eglot (mercury-scene 'shapes))
  (should-error (call-interactively (keymap-lookup eglot-mode-map "C-c m")) :type 'error))

(ert-deftest mercury-eglot-survives-a-killed-server ()
  (mercury-eglot (mercury-scene 'shop 'text))
  (mercury-type "return t")
  (let ((server (eglot-current-server)))
    (mercury-until "Eglot to trust the server" (null (eglot--inhibit-autoreconnect server)))
    (signal-process (jsonrpc--process server) 'SIGKILL)
    (mercury-until "another server"
      (and (eglot-current-server) (not (eq server (eglot-current-server))))))
  (mercury-eglot-ready)
  (mercury-type "ax(it")
  (should (string-prefix-p "it" (mercury-offered))))

;;; lsp-mode

(defun mercury-lsp (text)
  "A buffer with TEXT in which lsp-mode has our server as an add-on."
  (require 'lsp-mode)
  (require 'lsp-inline-completion)
  (setq lsp-session-file (expand-file-name "session" mercury-folder)
        lsp-client-packages nil
        lsp-auto-guess-root t
        lsp-warn-no-matched-clients nil)
  (mercury-visit text)
  (mercury-until "the engine"
    (when-let* ((answer (and lsp--buffer-workspaces (mercury-lsp-ready-p)
                             (lsp-request "mercury/status" (make-hash-table)))))
      (equal "ready" (lsp-get answer :state)))))

(defun mercury-lsp-ready-p ()
  (eq 'initialized (lsp--workspace-status (car lsp--buffer-workspaces))))

(defun mercury-ghost ()
  "The ghost text at point, waited for."
  (mercury-until "ghost text"
    (unless lsp-inline-completion--overlay
      (lsp-inline-completion-display 'implicit))
    lsp-inline-completion--overlay)
  (substring-no-properties (overlay-get lsp-inline-completion--overlay 'after-string)))

(ert-deftest mercury-lsp-mode-shows-ghost-text-and-inserts-exactly-that ()
  (mercury-lsp (mercury-scene 'shop 'text))
  (mercury-type (mercury-scene 'shop 'typed))
  (let ((before (buffer-string)) (ghost (mercury-ghost)))
    (when mercury-copies
      (should (equal ghost (mercury-scene 'shop 'rest))))
    (should (equal (buffer-string) before))
    (call-interactively (keymap-lookup lsp-inline-completion-active-map "TAB"))
    (should (equal (buffer-string) (concat before ghost)))))

(ert-deftest mercury-lsp-mode-shows-several-lines ()
  (mercury-lsp (mercury-scene 'block 'text))
  (mercury-type (mercury-scene 'block 'typed))
  (let ((before (buffer-string)) (ghost (mercury-ghost)))
    (when mercury-copies
      (should (equal ghost (mercury-scene 'block 'rest))))
    (call-interactively #'lsp-inline-completion-accept)
    (should (equal (buffer-string) (concat before ghost)))))

(ert-deftest mercury-lsp-mode-has-no-entry-in-the-completion-list-beside-it ()
  (mercury-lsp (mercury-scene 'shop 'text))
  (should (lsp-feature? "textDocument/inlineCompletion"))
  (should-not (lsp-feature? "textDocument/completion")))

(ert-deftest mercury-lsp-mode-carries-a-rename-on-in-one-undo-step ()
  (mercury-lsp (mercury-scene 'shapes))
  (mercury-rename)
  (call-interactively (keymap-lookup lsp-mode-map "C-c m"))
  (undo-boundary)
  (should (equal (buffer-string) (mercury-scene 'carried)))
  (undo)
  (should (equal (buffer-string) (mercury-scene 'renamed))))

(ert-deftest mercury-lsp-mode-takes-a-refused-suggestion-away ()
  (mercury-lsp (mercury-scene 'shop 'text))
  (mercury-type (mercury-scene 'shop 'typed))
  (let ((before (buffer-string)))
    (mercury-ghost)
    (call-interactively (keymap-lookup lsp-inline-completion-active-map "C-g"))
    (should-not lsp-inline-completion--overlay)
    (should (equal (buffer-string) before))))

;;; TAB, without a server

(defun mercury-tab-takes-p ()
  (eq 'lsp-inline-completion-accept (keymap-lookup lsp-inline-completion-active-map "TAB")))

(ert-deftest mercury-tab-indents-where-only-white-space-is-before ()
  (require 'lsp-inline-completion)
  (with-temp-buffer
    (insert "    ")
    (should-not (mercury-tab-takes-p))
    (insert "return")
    (should (mercury-tab-takes-p))))

(ert-deftest mercury-tab-is-left-to-menus-and-snippets ()
  (require 'lsp-inline-completion)
  (with-temp-buffer
    (insert "return")
    (let ((completion-in-region-mode t))
      (should-not (mercury-tab-takes-p)))
    (cl-letf (((symbol-function 'yas-active-snippets) (lambda () '(one))))
      (should-not (mercury-tab-takes-p)))))

;;; mercury-tests.el ends here
